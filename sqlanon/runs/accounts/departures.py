"""Departures: rows of persons who are in the source no more leave the release, before a batch is added to it.

A batch is divided into groups: of the persons of one class, whom the same answers and other releases are about. Who
holds the release of every night can tell no more than these groups. `retract` takes persons out of a group where those
who leave, and those who stay, satisfy the models, and so do all who stay in the class. `erase` takes out the class of a
batch as a whole, which satisfied them when it was added, and so all groups of it. Rows are known by keyed digests, and
equal ones stand for each other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.catalog.accounts import GrowingRelease, LineKind
from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import LeavingRows, publisher_of
from sqlanon.errors import ConflictError, PolicyError, VerificationError
from sqlanon.models import PrivacyModel, largest_k, models_of
from sqlanon.plan.connecting import release_columns
from sqlanon.plan.history import k_of_history
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Role
from sqlanon.results.history import DepartureFigures
from sqlanon.results.source_facts import Origin
from sqlanon.runs.accounts.entry import line_of, numbered_values
from sqlanon.runs.accounts.growth import find_growth
from sqlanon.runs.execution import ClassRun
from sqlanon.sql import Identifier, Relation, free_name, macro
from sqlanon.support.quantities import quantity
from sqlanon.values.expressions import text_of_person
from sqlanon.verification.verify import verify_table
from sqlanon.work.held_account import AccountLine, HeldAccount

_PARTS = ("shown", "parted", "retracted", "classed", "leaving", "places", "judged")
_GROUP, _CLASS = (Identifier(name) for name in ("signature", "class"))


def let_go(run: ClassRun, pinned: Origin | None) -> DepartureFigures | None:
    """Let rows of persons who are gone leave the run's release, in a transaction of its own; None where nobody is gone.

    Raises PolicyError where batches were released by other quasi-identifiers, ConflictError where nobody of the release
    is in its source, or it does not have the rows that were released there; else what publishing raises. The release
    then stays as it was.
    """
    growth, target = run.growth, run.session.target
    if growth is None or not run.policy.history.lets_go:
        return None
    _require_same_labels(run, growth)
    with run.journal.during("encode"):
        gone = _find_gone(run, growth, pinned)
        of_persons = {"gone": gone, "account": growth.account.id}
        persons = run.catalog.account_tables["account_persons"]
        counts = run.engine.query_one("runs/accounts/departures/count_persons", persons=persons, **of_persons)
    released, left, unknown = map(int, counts)
    if left == released and left:
        raise ConflictError(_nobody(run, left))
    departing = _Departing(run, gone)
    notes: tuple[str, ...] = ()
    if left > unknown:
        assert run.way_out is not None
        with run.journal.during("publish"):
            notes = run.way_out.let_go(target, run.plan.release, departing.find, departing.enter)
        run.growth = replace(growth, departures=run.catalog.departures(growth.account))
    run.workspace.drop(gone, *map(departing.table, _PARTS))
    if not left:
        return None
    rows, gone_rows = departing.rows, departing.left
    others = _others(run, growth) if rows else ()
    run.departure_notes = notes if rows else ()
    return DepartureFigures(run.policy.history.departures, gone_rows, rows, left - gone_rows, unknown, others)


def _require_same_labels(run: ClassRun, growth: GrowingRelease) -> None:
    """Refuse to tell the classes of batches by other labels than theirs."""
    own = {name for name, one in run.policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER}
    for batch in growth.batches:
        recorded = json.loads(run.catalog.run(batch.run).policy)["attributes"]
        labelled = {name for name, one in recorded.items() if one["role"] == Role.QUASI_IDENTIFIER.value}
        if changed := sorted(labelled ^ own):
            raise PolicyError(
                f"history.departures: {', '.join(map(repr, changed))} had another role in run {batch.run}, whose batch"
                " is in the release, and classes are told by the quasi-identifiers; give the roles of then, or write"
                " departures: keep."
            )


def _find_gone(run: ClassRun, growth: GrowingRelease, pinned: Origin | None) -> Relation:
    """Write down the persons of batches whom the source has no more."""
    engine, plan, gone = run.engine, run.plan, run.workspace.table("history_gone")
    (column,) = [one for one in engine.columns(plan.source) if one.name == run.policy.person]
    tables = run.catalog.account_tables
    with run.files.must_stay(), engine.transaction():
        hold_trusted(run.policy, engine, plan.source, pinned)
        engine.run(
            "runs/accounts/departures/create_gone",
            gone=gone,
            source=plan.source,
            person=text_of_person(engine.render, macro("codes.in_source", Identifier(column.name)), column),
            account=growth.account.id,
            accounts=tables["accounts"],
            persons=tables["account_persons"],
        )
    engine.analyze(gone)
    return gone


def _nobody(run: ClassRun, persons: int) -> str:
    return (
        f"Nobody of the {quantity(persons, 'person')} who were released is in {run.plan.source_name} any more. They are"
        " not taken for departed, as the table may be being loaded, or the subject be written otherwise; the release is"
        " as it was. Where all of them have left, drop the release, and begin anew: `sqlanon account forget`."
    )


def _others(run: ClassRun, growth: GrowingRelease) -> tuple[str, ...]:
    """Name the tables of other releases about the same people."""
    lines = run.catalog.account_releases(growth.account)
    names = dict.fromkeys(one.about for one in lines if one.kind is LineKind.RELEASE and one.about)
    there = publisher_of(run.session.target)
    return tuple(name for name in names if name != run.plan.release_name and there.exists(Relation.parse(name)))


@dataclass
class _Departing:
    """Rows on their way out of a release, in the transaction that deletes them.

    rows: how many leave; left: those of them that are of persons who are gone.
    """

    run: ClassRun
    gone: Relation
    rows: int = 0
    left: int = 0

    def table(self, part: str) -> Relation:
        """Name a work table."""
        return self.run.workspace.table(f"history_{part}")

    @property
    def _of_persons(self) -> dict[str, Any]:
        assert self.run.growth is not None
        tables = self.run.catalog.account_tables
        return {"account": self.run.growth.account.id, "persons": tables["account_persons"]}

    def find(self, session: Engine) -> LeavingRows:
        """Find the rows that leave; see `Publisher.remove`."""
        run, policy, leaving, places = self.run, self.run.policy, self.table("leaving"), self.table("places")
        assert run.growth is not None
        if find_growth(run.catalog, session, run.plan, run.growth.account.name, replace=True) is None:
            raise ConflictError("The account was forgotten meanwhile: run again.")
        if policy.history.departures == "erase":
            self._show(session)
            self._list_classes(session, leaving, self.gone)
        elif not self._retract(session, leaving):
            return LeavingRows(places, 0)
        of_rows = {"leaving": leaving, "shown": self.table("shown")}
        session.run("runs/accounts/departures/create_places", places=places, **of_rows)
        self.rows, self.left = map(int, session.query_one("runs/accounts/departures/count_leaving", leaving=leaving))
        return LeavingRows(places, self.rows)

    def _show(self, session: Engine) -> None:
        """Write down the rows of the release. Raises ConflictError where it lacks rows of persons."""
        run, release, shown = self.run, self.run.plan.release, self.table("shown")
        columns = session.columns(release)
        labels = release_columns(run.policy, {column.name for column in columns})
        session.run(
            "runs/accounts/departures/create_shown",
            shown=shown,
            release=release,
            line=line_of(session, columns),
            label=line_of(session, [column for column in columns if column.name in labels]),
            values=numbered_values(run.policy.sensitive),
            account=self._of_persons["account"],
            accounts=run.catalog.account_tables["accounts"],
        )
        (missing,) = session.query_one("runs/accounts/departures/count_missing", shown=shown, **self._of_persons)
        if missing:
            raise ConflictError(
                f"{run.plan.release_name} lacks {quantity(int(missing), 'row')} as they were released: it was changed."
                " Nobody can say which rows are those of the persons who left. Restore the release, or begin anew:"
                " `sqlanon account forget`, and then `run --replace`."
            )

    def _list_classes(self, session: Engine, classed: Relation, former: Relation) -> None:
        """Write down the whole classes, each of a batch, which the persons of `former` are in."""
        of_rows = {"classed": classed, "former": former, "shown": self.table("shown")}
        session.run("runs/accounts/departures/create_classes", **of_rows, **self._of_persons)

    def _retract(self, session: Engine, leaving: Relation) -> bool:
        """Write down those of groups, and then of classes, who can leave; tell whether anybody can."""
        parted, retracted, classed = (self.table(part) for part in ("parted", "retracted", "classed"))
        session.run("runs/accounts/departures/create_parted", parted=parted, gone=self.gone, **self._of_persons)
        groups = self._divisible(session, parted, _GROUP)
        if groups:
            self._show(session)
            groups = self._satisfying(session, parted, _GROUP, groups)
        if not groups:
            return False
        of_groups = {"parted": parted, "unit": _GROUP, "numbers": groups}
        session.run("runs/accounts/departures/create_retracted", leaving=retracted, **of_groups)
        self._list_classes(session, classed, retracted)
        classes = self._satisfying(session, classed, _CLASS, self._divisible(session, classed, _CLASS))
        if classes:
            of_classes = {"parted": classed, "unit": _CLASS, "numbers": classes}
            session.run("runs/accounts/departures/create_retracted", leaving=leaving, **of_classes)
        return bool(classes)

    def _divisible(self, session: Engine, parted: Relation, unit: Identifier) -> list[int]:
        """List the groups or classes of which enough leave, and enough stay or nobody does."""
        k = max(k_of_history(self.run.policy), largest_k(models_of(self.run.policy)))
        divisible = session.query("runs/accounts/departures/list_divisible", parted=parted, unit=unit, k=k)
        return [int(number) for (number,) in divisible]

    def _satisfying(self, session: Engine, parted: Relation, unit: Identifier, numbers: list[int]) -> list[int]:
        """List the groups or classes whose parts satisfy the models; halves are tried until what violates is alone."""
        models = [model for model in models_of(self.run.policy) if model.attribute is not None]
        if not models or not numbers or self._is_satisfied(session, models, parted, unit, numbers):
            return numbers
        half = len(numbers) // 2
        if not half:
            return []
        return [
            *self._satisfying(session, parted, unit, numbers[:half]),
            *self._satisfying(session, parted, unit, numbers[half:]),
        ]

    def _is_satisfied(
        self,
        session: Engine,
        models: Sequence[PrivacyModel],
        parted: Relation,
        unit: Identifier,
        numbers: Sequence[int],
    ) -> bool:
        sensitive, judged = self.run.policy.sensitive, self.table("judged")
        group = free_name("signature", sensitive)
        session.run(
            "runs/accounts/departures/create_parts",
            judged=judged,
            group=group,
            parted=parted,
            unit=unit,
            shown=self.table("shown"),
            values=numbered_values(sensitive),
            numbers=numbers,
        )
        verdict = verify_table(session, judged, [group.name], models)
        self.run.workspace.on(session).drop(judged)
        return all(result.satisfied for result in verdict.models)

    def enter(self, session: Engine) -> None:
        """Enter the departure in the account, and take note that the persons have left."""
        run, growth, k = self.run, self.run.growth, k_of_history(self.run.policy)
        assert growth is not None
        leaving = {"leaving": self.table("leaving"), **self._of_persons}
        (divided,) = session.query_one("runs/accounts/departures/count_divided", k=k, **leaving)
        if divided:
            raise VerificationError(
                f"{quantity(int(divided), 'group')} would be divided by rows that leave; the release is as it was."
                " Please report this."
            )
        held = HeldAccount(session, run.workspace.on(session), run.catalog, growth.account)
        size = held.hold()
        grouped = held.group_leaving(self.table("leaving"), size.lines, k)
        held.keep(grouped)
        line = AccountLine(LineKind.DEPARTURE, run.id, run.plan.source_name, run.plan.release_name)
        held.enter(size.lines, replace(grouped, departed=self.left), k, line, -self.rows)
