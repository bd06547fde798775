"""Answers in the account of the people whom they are about, held against all that was entered before.

Whoever knows the quasi-identifiers knows whom a question is about. So an answer divides the persons of the account:
into those whom it is about, and all others. No value is looked at for the decision, as in the audit of the question.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import LineKind, ReleaseAccount
from sqlanon.catalog.budget_records import ASKED
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.inquiries.questions.axes import TypedCondition
from sqlanon.inquiries.questions.question import Question
from sqlanon.inquiries.questions.question_audit import AskedTable
from sqlanon.models import models_of
from sqlanon.plan.history import account_problems, k_of_history
from sqlanon.plan.lookup import find_table
from sqlanon.plan.people_of_source import find_people, known_people
from sqlanon.policy import Policy
from sqlanon.results.history import counted_lines
from sqlanon.sql import Identifier, Relation
from sqlanon.support.quantities import quantity
from sqlanon.values.expressions import text_of_person
from sqlanon.work.held_account import AccountLine, AccountSize, HeldAccount
from sqlanon.work.workspace import TemporaryWorkspace

_REMEDY = "Ask of all persons of classes that were released, or of more persons."


@contextlib.contextmanager
def entering_answers(policy: Policy, engine: Engine, catalog: Catalog) -> Iterator[AnswerEntries]:
    """Open the account of a policy's people, where one is kept, and let nobody else enter anything there inside.

    Raises PolicyError where answers can't be tied to persons, ConflictError where somebody else has been at it for
    long.
    """
    if not policy.history.is_kept:
        yield AnswerEntries(engine, catalog, policy)
        return
    if problems := list(account_problems(policy)):
        raise PolicyError(problems)
    people = find_people(policy, engine, catalog, find_table(engine, policy.source.table or ""))
    account = catalog.open_account(people)
    with catalog.entering(people.name):
        yield AnswerEntries(engine, catalog, policy, account)


def unentered_warning(people: str) -> str:
    """Warn that the account of these people doesn't know an answer."""
    return (
        f"There is an account of what is out about {people}, and this answer is not entered: the policy has no"
        " `history`. Later releases and answers are not held against it. docs/several-releases.md says more."
    )


@dataclass(frozen=True)
class AnswerEntries:
    """The entries of answers in an account, by the transaction of a session; account: None where none is kept."""

    engine: Engine
    catalog: Catalog
    policy: Policy
    account: ReleaseAccount | None = None

    @property
    def is_kept(self) -> bool:
        """Tell whether answers are entered."""
        return self.account is not None

    def enter(
        self,
        source: Relation,
        asked: AskedTable,
        spans: Sequence[TypedCondition],
        question: Question,
        person: Column | None,
        repeats: bool,
    ) -> str | None:
        """Enter the answer to a question; returns what is to be said of it, None for nothing.

        source: the policy's. asked, spans: the rows, and the conditions by their columns. person: the column that tells
        persons apart, in these rows; repeats: whether some person has several rows.

        Raises PolicyError where persons have several rows, ProtectionError where the policy refuses what everything
        together tells, ConflictError where the account is gone.
        """
        if self.account is None or person is None:
            known = known_people(self.policy, self.engine, self.catalog, source)
            return "\n".join(map(unentered_warning, known)) or None
        if repeats:
            raise PolicyError(
                f"history: '{self.policy.person}' repeats, and answers are entered of tables with one row a person; ask"
                " of such a table, or write history: {mode: none}."
            )
        held = HeldAccount(self.engine, TemporaryWorkspace(self.engine), self.catalog, self.account)
        size, k, members = held.hold(), k_of_history(self.policy), held.workspace.table("history_members")
        self.engine.run(
            "inquiries/questions/create_asked_members",
            members=members,
            source=asked.source,
            person=text_of_person(self.engine.render, Markup(Identifier(person.name)), person),
            spans=asked.span_values(spans),
            account=self.account.id,
            accounts=self.catalog.account_tables["accounts"],
        )
        grouped = held.group(members, k, is_release=False)
        division = self.engine.query_one("inquiries/questions/measure_division", groups=grouped.groups, k=k)
        few, divided, new = map(int, division)
        problem = self._problem(size, question, grouped.below_k if divided or new else few, divided)
        if problem is not None and self.policy.history.mode != "watch":
            raise ProtectionError(f"The question was denied: {problem} {_REMEDY}")
        if divided or new:  # else it is about whole groups, and tells nobody from anybody
            held.keep(grouped)
        held.enter(size.lines, grouped, k, AccountLine(LineKind.ANSWER, ASKED, str(source), str(question)))
        held.workspace.drop(members)
        return None if problem is None else f"The question was answered all the same: {problem}"

    def _problem(self, size: AccountSize, question: Question, few: int, divided: int) -> str | None:
        """Say what the answer and all that was entered tell together; None where nothing is violated."""
        assert self.account is not None
        earlier = counted_lines("earlier release", size.releases, size.answers)
        if few:
            together = f"together with {earlier}, its answer" if size.releases or size.answers else "its answer"
            return f"{together} could tell of fewer than {k_of_history(self.policy)} persons of {self.account.name}."
        column = question.column
        models = [model.name for model in models_of(self.policy) if column is not None and model.attribute == column]
        if divided and models:
            return (
                f"it divides {quantity(divided, 'group')} of persons who are not told apart by {earlier} about"
                f" {self.account.name}, and whether the parts satisfy {', '.join(dict.fromkeys(models))} can't be"
                f" decided without a look at '{column}'."
            )
        return None
