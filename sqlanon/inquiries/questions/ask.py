"""Questions to a policy's source: decided by what was answered before, written down, answered.

The table is one that does not change: with a row more or less, the difference of two answers is a value of one person.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import Any

from markupsafe import Markup

from sqlanon.catalog.histories import History
from sqlanon.engines import connect
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import dialect_of_url
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError, ProtectionError, QuestionError
from sqlanon.inquiries.questions.axes import TypedCondition, key_of, spans_of
from sqlanon.inquiries.questions.dependence import related_columns
from sqlanon.inquiries.questions.entered_answer import AnswerEntries, entering_answers
from sqlanon.inquiries.questions.question import Aggregate, Question, parse_question
from sqlanon.inquiries.questions.question_audit import AskedTable, audit
from sqlanon.inquiries.questions.row_space import SumVerdict
from sqlanon.models import models_of
from sqlanon.models.k_anonymity import largest_k
from sqlanon.plan.beneath import table_beneath
from sqlanon.plan.opening import open_source_table
from sqlanon.policy import Policy, Role
from sqlanon.results.codec import optional
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.values.expressions import comparable, double_of, hashable
from sqlanon.work.session import catalog_place, open_catalog

DENIED = (
    "The question was denied: with what was answered before, and the totals of the table, its answer could tell of"
    " fewer than {k} persons, or of all but fewer than {k}. Ask of more persons, or of fewer groups."
)
_EXTREMES = (
    "{name} is not answered: a least or greatest value is the value of a person, and whether a further one would say"
    " whose can't be decided without a look at the values. Ask for sum, avg or count."
)
_LEAST_K = 2  # in a group of one nobody is hidden
_SHOWN_DIGITS = 12  # of quotients, and of sums of floating-point numbers
_MEASURED = (Role.SENSITIVE, Role.INSENSITIVE)


@dataclass(frozen=True)
class Answer:
    """An answered question, with its number in the history of the table; `value` is written in full.

    warning: what the answer and all that is out about the same people could tell; None where nothing is to be said.
    """

    question: str
    value: str
    number: int
    warning: str | None = optional()


@dataclass(frozen=True)
class _Measured:
    """The table as it is: rows, persons, those that are asked about, a digest of all rows, rows without a number."""

    rows: int
    persons: int
    asked: int
    unknown: int
    digest: str
    unusable: int


def ask(policy: Policy, text: str, options: EngineOptions | None = None) -> Answer:
    """Answer a question about the source of a policy, or deny it.

    The question is in its table's history before the answer is worked out, and the answer in the account of its people,
    where one is kept, before the answer leaves.

    Raises:
        QuestionError: the question can't be read or is about columns of other roles.
        PolicyError: the policy has no k; the column lacks numbers, or a person's rows differ in quasi-identifiers; the
            engine answers no questions.
        ProtectionError: the question is denied, or the table is no longer what earlier questions were answered of.
        AccessError, EngineError, ConflictError: the history, or the account, can't be read or written.
    """
    question = parse_question(text)
    k = require_auditable(policy)
    _require_answerable(policy, question)
    with (
        connect(policy.source.url or "", options) as engine,
        open_catalog(policy, engine) as catalog,
        catalog.asking(),
        entering_answers(policy, engine, catalog) as entries,
        open_source_table(engine, policy, keeps=entries.is_kept) as source,
        engine.transaction(),
    ):
        return _Asking(entries, source, question, k).answer()


def require_auditable(policy: Policy) -> int:
    """Check what needs neither the table nor a question; the k of the policy.

    Raises PolicyError where questions to the policy's source can't be audited.
    """
    dialect_of_url(policy.source.url or "").answers_questions.require("source: ")
    if policy.source.table is None:
        raise PolicyError("source.file: questions are asked of a table that stays as it is; load the file into one.")
    catalog_place(policy)
    if policy.is_private:
        raise PolicyError(
            "privacy: questions to a policy of differential privacy are answered with noise: --epsilon 0.1."
        )
    k = largest_k(models_of(policy))
    if k < _LEAST_K:
        raise PolicyError("privacy: questions need a k of 2 at least, such as {model: k-anonymity, k: 5}.")
    return k


def _require_answerable(policy: Policy, question: Question) -> None:
    """Refuse a question that is answered of no table."""
    if question.aggregate in (Aggregate.MIN, Aggregate.MAX):
        raise QuestionError(_EXTREMES.format(name=question.aggregate.value))
    if question.column is not None:
        attribute = policy.attributes.get(question.column)
        if attribute is None or attribute.role not in _MEASURED:
            raise QuestionError(f"'{question.column}' is no sensitive or insensitive column: sums are of such columns.")


class _Asking:
    """A question while it is decided and answered, in one snapshot of its table.

    The question is put in the words of the table beneath the source, which the history belongs to.
    """

    def __init__(self, entries: AnswerEntries, source: Relation, question: Question, k: int) -> None:
        engine, catalog, policy = entries.engine, entries.catalog, entries.policy
        self._engine = engine
        self._catalog = catalog
        self._shown = question
        self._beneath = table_beneath(engine, source)
        names = self._beneath.columns
        self._all_columns = engine.columns(self._beneath.table)
        self._rows, self._readable = self._read(source)
        self._columns = {one.name: one for one in self._all_columns if one.name in names.values()}
        quasi_identifiers = [name for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER]
        spans_of(question, [replace(self._columns[names[name]], name=name) for name in names], quasi_identifiers)
        self._question = question.renamed(names)
        self._quasi_identifiers = [names[name] for name in quasi_identifiers if name in names]
        self._table = AskedTable(engine, self._rows, self._person(policy), k)
        self._spans = self._spans_of(self._question)
        self._measured_column = self._measured()
        self._source, self._entries = source, entries

    def answer(self) -> Answer:
        """Measure the table, decide, write the question down, answer it."""
        table, policy = self._beneath.table, self._entries.policy
        sources = self._catalog.identities(str(table), table)
        self._require_no_other_history(sources)
        history = self._catalog.history(sources)
        watched = self._watched(history)
        measured = self._measure(watched)
        self._require_usable(measured)
        if history is not None and history.digest != measured.digest:
            raise ProtectionError(
                f"{table} is no longer what earlier questions were answered of, and the difference of two"
                " answers could be one person's value: nothing more is answered. Put the rows back, or let questions be"
                " about tables that don't change, such as a copy a year."
            )
        adds = self._decide(measured, history, watched)
        person = None if policy.person is None else self._columns[self._beneath.columns[policy.person]]
        repeats = measured.rows != measured.persons
        warning = self._entries.enter(self._source, self._table, self._spans, self._shown, person, repeats)
        written = self._catalog.write_question(sources, measured.digest, str(self._question), adds)
        return Answer(str(self._shown), self._value(), written.number, warning)

    def _read(self, source: Relation) -> tuple[Relation | Expression, set[str]]:
        """The rows, with the table's names of columns, and those that can be read: of the table, else of its view."""
        table, names = self._beneath.table, {column: name for name, column in self._beneath.columns.items()}
        hidden = self._engine.unreadable_columns(table)
        if source == table or not hidden & names.keys():
            return table, {column.name for column in self._all_columns} - hidden
        hidden = self._engine.unreadable_columns(source)
        shown = {column: name for column, name in names.items() if name not in hidden}
        pairs = [(Identifier(name), Identifier(column)) for column, name in shown.items()]
        return macro("output.renamed", source, pairs), set(shown)

    def _require_no_other_history(self, sources: Sequence[str]) -> None:
        """Refuse a table whose rows were asked for as those of a view or a partition, by an earlier version."""
        for name in self._catalog.asked_tables(sources):
            other, table = self._engine.resolve(name), self._beneath.table
            if other is not None and other != table and self._shares_rows(other):
                raise ProtectionError(
                    f"Questions were answered of {other}, which has rows of {table}, when each had a history of its"
                    " own: nothing more is answered of either. Let questions be about a table whose persons are new."
                )

    def _shares_rows(self, other: Relation) -> bool:
        table = self._beneath.table
        return self._engine.reads(other, table) or self._engine.reads(table, other)

    def _watched(self, history: History | None) -> list[Column]:
        """The columns whose values must stay as they were: all that the role of the first question could read."""
        names = self._readable if history is None else {*(watched_names(history.digest) or self._names())}
        lacking = sorted(names - self._readable)
        if lacking:
            raise PolicyError(
                f"Earlier questions of {self._beneath.table} are held against columns that this role may not read:"
                f" {', '.join(lacking)}. Ask as a role that may."
            )
        asked = {self._question.column, *(span.column.name for span in self._spans)} - {None}
        if unwatched := sorted(str(name) for name in asked - names):
            raise ProtectionError(
                f"Earlier questions of {self._beneath.table} were asked by a role that could not read"
                f" {', '.join(unwatched)}, so that nobody can tell whether values changed since: this is not answered."
            )
        return [column for column in self._all_columns if column.name in names]

    def _names(self) -> list[str]:
        return [column.name for column in self._all_columns]

    def _decide(self, measured: _Measured, history: History | None, watched: list[Column]) -> list[str | None]:
        """The measures of which the answer tells more than is known; raises ProtectionError where it is denied."""
        k = self._table.k
        if not k <= measured.asked <= measured.persons - k:
            raise ProtectionError(DENIED.format(k=k))
        adds = []
        for measure in self._question.measures:
            known = self._known(history, self._related(history, measure, watched, measured.persons))
            verdict = audit(self._table, known, self._spans, measured.persons)
            if verdict is SumVerdict.DENIED:
                raise ProtectionError(DENIED.format(k=k))
            adds += [measure] if verdict is SumVerdict.NEW else []
        return adds

    def _related(
        self, history: History | None, measure: str | None, watched: list[Column], persons: int
    ) -> frozenset[str | None]:
        """The measures that sums of this one tell of; the table is looked at only where others were asked for.

        Where a row is a person, everybody knows the numbers of rows by the quasi-identifiers.
        """
        asked = {one for question in ([] if history is None else history.questions) for one in question.adds}
        apart: set[str | None] = {None} if self._table.person is None else set()
        if measure in apart or not asked - apart - {measure}:
            return frozenset({measure})
        return related_columns(self._table, watched, persons)[measure]

    def _known(self, history: History | None, measures: frozenset[str | None]) -> list[tuple[TypedCondition, ...]]:
        """The conditions of earlier questions that told something of some measures, each once."""
        questions = () if history is None else history.questions
        known = [self._spans_of(parse_question(one.question)) for one in questions if measures.intersection(one.adds)]
        return list({frozenset(spans): spans for spans in known}.values())

    def _spans_of(self, question: Question) -> tuple[TypedCondition, ...]:
        return spans_of(question, list(self._columns.values()), self._quasi_identifiers)

    def _person(self, policy: Policy) -> Expression | None:
        if policy.person is None:
            return None
        if policy.person not in self._beneath.columns:
            raise PolicyError(f"subject: the table has no column '{policy.person}'.")
        column = self._columns[self._beneath.columns[policy.person]]
        return comparable(self._engine, Markup(Identifier(column.name)), column.kind)

    def _measured(self) -> Column | None:
        name = self._question.column
        if name is None:
            return None
        if name not in self._columns or not self._columns[name].kind.is_numeric:
            raise QuestionError(f"'{self._shown.column}' is no column of numbers of the table: sums are of numbers.")
        return self._columns[name]

    def _measure(self, watched: list[Column]) -> _Measured:
        """Measure the table by one scan; the digest is of the watched columns, and of the names of all."""
        column = self._measured_column
        value = None if column is None else Markup(Identifier(column.name))
        rows, persons, asked, unknown, digest, unusable = self._engine.query_one(
            "inquiries/questions/measure_table",
            source=self._table.source,
            person=self._table.person,
            spans=self._table.span_values(self._spans),
            columns=[hashable(self._engine, one, Markup(Identifier(one.name))) for one in watched],
            value=value,
            is_finite=column is None or self._engine.render.macro("is_finite_number", value, column.kind.value),
        )
        named = [[one.name, one.type] for one in self._all_columns]
        some = "" if len(watched) == len(named) else f"{json.dumps([one.name for one in watched])} "
        return _Measured(rows, persons, asked, unknown, f"{some}{rows} {digest} {named}", unusable)

    def _require_usable(self, measured: _Measured) -> None:
        """Refuse a column or persons by which an answer would tell more than sums do."""
        if measured.unusable:
            raise PolicyError(
                f"'{self._shown.column}' is NULL or no finite number in some row, and sums would tell whose: let"
                " questions be about a table that has a number in every row."
            )
        if self._table.person is None:
            return
        keys = [key_of(self._engine, self._columns[name]) for name in self._quasi_identifiers if name in self._columns]
        (changing,) = self._engine.query_one(
            "inquiries/questions/count_changing", source=self._table.source, person=self._table.person, keys=keys
        )
        if changing or measured.unknown:
            raise PolicyError(
                "subject: the rows of some person differ in quasi-identifiers, or are of nobody known, so that groups"
                " of persons could overlap: let questions be about a table in which each person is known and has one"
                " value of each."
            )

    def _value(self) -> str:
        """Work out the answer."""
        column = self._measured_column
        value: Any = 0 if column is None else Markup(Identifier(column.name))
        if column is not None and column.kind is Kind.FLOAT:
            value = double_of(self._engine.render, value, column.kind)
        rows, total = self._engine.query_one(
            "inquiries/questions/answer_question",
            source=self._table.source,
            spans=self._table.span_values(self._spans),
            value=value,
        )
        if column is None:
            return str(rows)
        is_exact = column.kind is not Kind.FLOAT and self._question.aggregate is Aggregate.SUM
        return _written(Decimal(total), 1 if self._question.aggregate is Aggregate.SUM else rows, is_exact)


def watched_names(digest: str) -> list[str] | None:
    """The columns that a digest is of, where it is of some; None where it is of all."""
    return list(json.JSONDecoder().raw_decode(digest)[0]) if digest.startswith("[") else None


def _written(total: Decimal, rows: int, is_exact: bool) -> str:
    """Write a sum, or its quotient, without trailing zeros."""
    with localcontext(prec=100 if is_exact else _SHOWN_DIGITS):
        value = total / rows
        return f"{value:f}".rstrip("0").rstrip(".") if "." in f"{value:f}" else f"{value:f}"
