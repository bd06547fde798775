"""Gates that every release passes on its way out, whatever kind of run made it.

Nobody else writes the release meanwhile, others may follow and cancel the run, no earlier release of a source forbids
this one, and the transaction that publishes records it. Every kind of run calls `at_work` and `publish_together`;
nothing else publishes, and rows leave a release by `WayOut.let_go` alone, which a test holds the program to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlanon.catalog import Catalog, Released
from sqlanon.catalog.accounts import People
from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import Leaving, Record, nothing, publisher_of
from sqlanon.policy import Policy
from sqlanon.runs.linking import check_earlier_releases, unentered_warning, unknown_warning
from sqlanon.runs.recording import PublishedRecord
from sqlanon.sql import Relation
from sqlanon.staging.staging import Staged
from sqlanon.work.control import Control
from sqlanon.work.journal import Journal
from sqlanon.work.session import Session
from sqlanon.work.workspace import Workspace


@contextlib.contextmanager
def at_work(
    session: Session,
    policy: Policy,
    run: str,
    journal: Journal,
    lock: contextlib.AbstractContextManager[None],
    *,
    phase: str | None = None,
) -> Iterator[tuple[Workspace, Control]]:
    """Inside, `lock` keeps others from the release, work tables are private, and others may cancel the run.

    phase: what others see in place of the phases of the run; see `Control`.
    """
    home = None if session.own_catalog else policy.catalog.schema_
    with (
        lock,
        Workspace(session.engine, session.catalog, run, home) as workspace,
        Control(session.catalog.channel(run), journal, *session.engines, phase=phase) as control,
    ):
        yield workspace, control


@dataclass
class WayOut:
    """The way of a run's release to its readers.

    republish: what the run's policy says of releases by other rules.
    sources: the tables or files whose rows the release is about, each by its place and its name.
    accounts: the names of the accounts of the people whom the release is about, if it is not entered.
    people: those in whose account it is entered; None where it is not.
    linked: the warning about earlier releases of a source, as of the last check.
    published: whether readers see the release.
    """

    catalog: Catalog
    republish: str | None
    sources: Sequence[tuple[str, str]]
    accounts: Sequence[str] = ()
    people: People | None = None
    linked: str | None = None
    published: bool = False

    @property
    def enters(self) -> bool:
        """Tell whether the release is entered in an account."""
        return self.people is not None

    def check_earlier(self, rules: str | None = None, digest: str | None = None) -> Released | None:
        """Refuse another recoding of a source that is to have one only; return the newest earlier release of a source.

        rules, digest: the run that found the rules, and their digest; None where they are not known yet.

        Raises PolicyError where this policy, or that of an earlier release, wants one recoding only, AccessError where
        this policy does, and not all catalogs can be read.
        """
        newest: Released | None = None
        warnings, unknown = list[str | None](), list[Released]()
        entered = frozenset[str]() if self.people is None else self.catalog.entered_runs(self.people.name)
        for place, name in self.sources:
            released, unread = self.catalog.released(place), self.catalog.unread(place)
            warnings.append(check_earlier_releases(released, name, self.republish, rules, digest, unread, entered))
            newest = newest or next(iter(released), None)
            unknown += [one for one in released if not one.is_private and one.run not in entered]
        if self.people is not None and unknown:
            warnings = [unknown_warning([one.shown for one in unknown])]
        linked = [*list(filter(None, warnings))[:1], *map(unentered_warning, self.accounts)]
        self.linked = "\n".join(linked) or None
        return newest

    def let_go(self, session: Engine, release: Relation, leaving: Leaving, enter: Record) -> tuple[str, ...]:
        """Take rows out of a release that is there, and enter that in the same transaction of the session.

        leaving: finds the rows that leave, in that transaction; enter: is called when they are gone.

        Returns notes for people. Raises what publishing raises; the release then stays as it was.
        """
        with self._held():
            return publisher_of(session, enter).remove(release, leaving).notes

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Inside, nobody else releases a source, or enters anything in the account."""
        with _held([self]):
            yield


@dataclass(frozen=True)
class Leave:
    """A staged release that is to take its place, and what is recorded of it in the same transaction.

    before_commit: is called when all else is done in that transaction; what it raises undoes it.
    """

    way: WayOut
    staged: Staged
    record: PublishedRecord
    control: Control
    rules: str | None = None
    digest: str | None = None
    before_commit: Record = nothing

    def publish(self) -> tuple[str, ...]:
        """Let the release take its place, in the transaction that is open or in one of its own; notes for people."""
        staged = self.staged
        if staged.is_public_before_its_record:
            self.control.finish()
        return staged.publish(self._within)

    def _within(self, session: Engine) -> None:
        self.control.finish()
        self.record.make_within(session)
        self.before_commit(session)


def publish_together(leaving: Sequence[Leave]) -> list[tuple[str, ...]]:
    """Let staged releases take their places, all or none, and record them in the same transaction where there is one.

    Several are in one database, which has transactions.

    Returns notes for people, of each. Raises PolicyError where others have released a source since, Cancelled.
    """
    with _held([one.way for one in leaving]):
        for one in leaving:
            one.way.check_earlier(one.rules, one.digest)
        together = contextlib.nullcontext() if len(leaving) == 1 else leaving[0].staged.engine.transaction()
        with together:
            notes = [one.publish() for one in leaving]
        for one in leaving:
            one.way.published = True
        for one in leaving:
            one.record.make_up_for()
    return notes


@contextlib.contextmanager
def _held(gates: Sequence[WayOut]) -> Iterator[None]:
    """Inside, nobody else releases a source of these, or enters anything in their accounts."""
    with contextlib.ExitStack() as locks:
        catalogs = {place: way.catalog for way in gates for place, _ in way.sources}
        for place in sorted(catalogs):
            locks.enter_context(catalogs[place].releasing(place))
        people = {way.people.name: way.catalog for way in gates if way.people is not None}
        for name in sorted(people):
            locks.enter_context(people[name].entering(name))
        yield
