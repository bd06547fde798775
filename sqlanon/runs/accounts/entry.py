"""Entering a release in the account of its people, and the check against all that was entered before.

Persons are grouped by their classes in all releases, or their absence. Such a group is what somebody can tell who holds
them all: those who came, those who left and those whose class changed are groups of their own. Each must hold k
persons, and groups that the new release has must satisfy the policy's models of sensitive values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from sqlanon.catalog.accounts import AccountRelease, LineKind, ReleaseAccount
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.publishing import Record, nothing
from sqlanon.engines.star import CLASS_NUMBER
from sqlanon.errors import ConflictError, PolicyError, ProtectionError, VerificationError
from sqlanon.models import models_of
from sqlanon.plan.history import k_of_history
from sqlanon.releases.base import Judged
from sqlanon.results.history import HistoryFigures
from sqlanon.runs.accounts.history_problem import REFUSED, REPAIR_HINT, history_problem
from sqlanon.runs.accounts.sets import compare_sets, hold_sets, set_model, sets_problem
from sqlanon.runs.execution import ClassRun, RunExecution
from sqlanon.sql import Expression, Identifier, Relation, free_name
from sqlanon.staging.staging import Staged
from sqlanon.support.quantities import quantity
from sqlanon.values.digest import exact_text
from sqlanon.values.expressions import shown, text_of_person
from sqlanon.verification.model_hierarchies import checked_hierarchies
from sqlanon.verification.verify import verify_table
from sqlanon.work.held_account import AccountLine, HeldAccount


@dataclass(frozen=True)
class AccountEntry:
    """A release that is about to be entered.

    members: a work table `(person, class, s0, s1, …)` of its persons; sensitive: the names of `s0, s1, …`.
    adds: whether the persons are a batch, beside those of earlier ones.
    """

    run: ClassRun
    account: ReleaseAccount
    members: Relation
    sensitive: tuple[str, ...]
    adds: bool

    def enter(self, session: Engine) -> None:
        """Enter the release in the transaction that publishes it; the session's.

        Raises ProtectionError where the policy refuses what all releases together tell, ConflictError where the account
        is gone.
        """
        run, k = self.run, k_of_history(self.run.policy)
        assert run.outcome.verification is not None
        held = HeldAccount(session, run.workspace.on(session), run.catalog, self.account)
        size = held.hold()
        grouped = held.group_batch(self.members, size.lines, k) if self.adds else held.group(self.members, k)
        if self.adds and run.growth is None and run.catalog.batches(self.account):
            raise ConflictError(
                f"Another run has released the first batch of {self.account.name} meanwhile: run again."
            )
        sets = compare_sets(run, session, self.account, self.members, size.lines)
        violated = tuple(self._violated(session, grouped.signatures))
        run.history = HistoryFigures(
            people=self.account.name,
            releases=size.releases + 1,
            answers=size.answers or None,
            persons=grouped.persons,
            groups=grouped.count,
            smallest=grouped.smallest,
            below_k=grouped.below_k,
            came=grouped.came,
            left=grouped.departed,
            added_to=None if run.growth is None else run.growth.rows,
            repaired=run.repaired,
            departures=run.departures,
            sets=sets,
        )
        if sets is None:
            run.history_problem = history_problem(run.history, k, violated, run.unrepaired)
        else:
            run.history_problem = sets_problem(sets, self.account.name, set_model(run))
        if run.history_problem is not None and run.policy.history.mode != "watch":
            is_mendable = sets is None and run.repaired is None and run.unrepaired is None
            hint = REPAIR_HINT if is_mendable else ""
            raise ProtectionError(f"{run.history_problem} {REFUSED}{hint}")
        held.keep(grouped)
        kind = LineKind.BATCH if self.adds else LineKind.RELEASE
        line = AccountLine(kind, run.id, run.plan.source_name, run.plan.release_name)
        rows, counterfeits = run.outcome.verification.statistics.rows, None if sets is None else sets.counterfeits
        held.enter(size.lines, grouped, k, line, rows, run.outcome.gcp, counterfeits)

    def _violated(self, session: Engine, signatures: Relation) -> Iterator[str]:
        """Name the models of sensitive values that groups of the release's persons violate."""
        policy, workspace = self.run.policy, self.run.workspace.on(session)
        models = [one for one in models_of(policy) if one.attribute is not None and not one.holds_sets]
        if not models:
            return
        judged, group = workspace.table("history_judged"), free_name("signature", self.sensitive)
        session.run(
            "runs/accounts/create_group_members",
            judged=judged,
            group=group,
            members=self.members,
            signatures=signatures,
            values=numbered_values(self.sensitive),
        )
        with checked_hierarchies(session, policy, models, judged) as hierarchies:
            verdict = verify_table(session, judged, [group.name], models, hierarchies=hierarchies)
        workspace.drop(judged)
        yield from (result.model for result in verdict.models if not result.satisfied)


def prepare_entry(run: ClassRun, judged: Judged, staged: Staged, *, with_rows: bool) -> AccountEntry | None:
    """Write down the persons of a staged release, as their account knows them; None where no account is kept.

    with_rows: whether digests of the rows are kept, for who leaves later; judged rows then have all released columns.

    Raises PolicyError where a person has several rows.
    """
    if run.way_out is None or run.way_out.people is None:
        return None
    engine, sensitive = judged.engine, tuple(run.policy.sensitive)
    account = run.catalog.open_account(run.way_out.people)
    columns = {column.name: column for column in engine.columns(judged.relation)}
    line = line_of(engine, staged.engine.columns(staged.final)) if with_rows else None
    person, members = columns[judged.person or ""], run.workspace.table("history_members")
    number = judged.number if judged.published is None else CLASS_NUMBER
    engine.run(
        "runs/accounts/create_members",
        members=members,
        judged=judged.relation,
        accounts=run.catalog.account_tables["accounts"],
        account=account.id,
        person=text_of_person(engine.render, Markup(Identifier(person.name)), person),
        number=None if number is None else Identifier(number),
        keys=[key for name in judged.columns for key in shown(engine, columns[name], Markup(Identifier(name)))],
        line=line,
        values=numbered_values(sensitive),
    )
    engine.analyze(members)
    released = staged.final if judged.published is None else judged.relation
    if _rows_and_persons(run, engine, members, person) != set(staged.engine.query_one("count_rows", table=released)):
        raise PolicyError("history: a person has several rows, and releases are entered of one row a person.")
    if judged.published is not None:
        hold_sets(run, account, members, staged)
    if line is not None:
        _require_same_rows(run, account, members, staged, line)
    return AccountEntry(run, account, members, sensitive, run.policy.history.adds)


def line_of(engine: Engine, columns: Sequence[Column]) -> Expression:
    """Write the values of a row as one text, which no other row has, in a form that engines write alike."""
    return engine.render.macro("line", [exact_text(engine.render, one, Identifier(one.name)) for one in columns])


def _require_same_rows(
    run: ClassRun, account: ReleaseAccount, members: Relation, staged: Staged, line: Expression
) -> None:
    """Refuse digests that are not those of the rows which are about to be released: nobody could leave by them."""
    accounts = run.catalog.account_tables["accounts"]
    of_account = {"account": account.id, "accounts": accounts, "members": members}
    (others,) = staged.engine.query_one(
        "runs/accounts/departures/compare_digests", staged=staged.final, line=line, **of_account
    )
    if others:
        raise VerificationError(
            f"{quantity(int(others), 'row')} of the staged release can't be told by their persons; nothing was"
            " published. Please report this, and write departures: keep."
        )


def _rows_and_persons(run: ClassRun, engine: Engine, members: Relation, person: Column) -> set[int]:
    """Count the rows and the persons of members: one number where each person has one row.

    Where verification has counted one row a person, by values whose texts differ where they do, digests differ too.
    """
    assert run.outcome.verification is not None
    counted = run.outcome.verification.persons
    if counted is None or counted.persons < counted.rows or person.kind is Kind.OTHER:
        return set(engine.query_one("runs/accounts/count_members", members=members))
    return set(engine.query_one("count_rows", table=members))


def numbered_values(sensitive: Sequence[str]) -> list[dict[str, Identifier]]:
    """Name columns of sensitive values in work tables."""
    return [{"name": Identifier(name), "column": Identifier(f"s{place}")} for place, name in enumerate(sensitive)]


def enter_uncounted(run: RunExecution[Any], kind: LineKind, about: str) -> Record:
    """Make the act that enters a release whose persons nobody knows, by the transaction that publishes it.

    The act does nothing where no account is kept.
    """
    if run.way_out is None or run.way_out.people is None:
        return nothing
    account = run.catalog.open_account(run.way_out.people)

    def enter(session: Engine) -> None:
        number = HeldAccount(session, run.workspace.on(session), run.catalog, account).hold().lines
        of_line = (account.id, number, kind, run.id, run.plan.source_name, about, datetime.now(UTC))
        run.catalog.enter_within(session, AccountRelease(*of_line))

    return enter
