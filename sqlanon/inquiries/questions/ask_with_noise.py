"""Questions answered with noise, each charged on the privacy budget of its source before the source is looked at.

Nothing is denied: what all answers and releases tell together is bounded by the budget (Dwork, McSherry, Nissim, Smith,
TCC 2006). `asking` answers exactly, and denies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from markupsafe import Markup

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import LineKind
from sqlanon.catalog.budget_records import ASKED, Budget, MechanismUse, Spending, amount, cost_text, remainder
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import dialect_of_url
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError, QuestionError
from sqlanon.inquiries.questions.axes import TypedCondition, spans_of
from sqlanon.inquiries.questions.question import Aggregate, Question, parse_question
from sqlanon.inquiries.questions.question_audit import AskedTable
from sqlanon.mechanisms.charges import NOISE, likely_noise
from sqlanon.mechanisms.mechanisms import Mechanisms, OpenDP
from sqlanon.plan.opening import open_source_table
from sqlanon.plan.people_of_source import find_people
from sqlanon.policy import DifferentialPrivacy, Policy, PrivacyBudget, Role
from sqlanon.policy.differential_privacy import MOST_EPSILON, mechanism_of
from sqlanon.sql import Expression, Identifier, Relation
from sqlanon.support.exact_numbers import parse_decimal
from sqlanon.values.expressions import comparable
from sqlanon.work.session import catalog_place, open_catalog

_LEAST_EPSILON = Fraction(1, 2**50)  # so that numbers of 64 bits hold the noise


_MOST_TOTAL = 2**61  # of a sum in units, as the noise is added to numbers of 64 bits


_MOST_SCALE = 2**50  # of noise in units


_ONE = 1  # a row, or a person, adds to a count at most


_MOST_DECIMALS = 9


_MOST = 2**53  # of a bound, in units


@dataclass(frozen=True)
class NoisyAnswer:
    """A count or a sum with noise, in full.

    unit: what is protected and counted, `rows` or `persons`. epsilon: what it cost of the budget `ledger`, of which
    `left` is left. within: what the noise does not exceed in 95 of 100 cases.
    """

    question: str
    value: int | str
    unit: str
    epsilon: str
    within: int | str
    ledger: str
    left: str


def ask_with_noise(
    policy: Policy,
    text: str,
    epsilon: Fraction | str,
    options: EngineOptions | None = None,
    *,
    mechanisms: Mechanisms | None = None,
) -> NoisyAnswer:
    """Answer a question about the source of a policy that asks for differential privacy, by a number with noise.

    epsilon: what it may cost; a text such as `0.1` is exact.

    Where persons are the unit, distinct persons are counted, and rows of nobody known are not. Sums are of values
    between the bounds that the policy declares.

    Raises:
        QuestionError: the question can't be read, or is neither a count nor a sum, or epsilon is no amount.
        PolicyError: the column has no declared bounds; the policy names no budget or no such source.
        BudgetError: the budget does not cover epsilon; then nothing was looked at.
        AccessError, EngineError, ConflictError: the ledger can't be written, or the source can't be read.
    """
    question = parse_question(text)
    share = _amount(epsilon)
    asked, budget = require_budgeted(policy)
    if question.aggregate not in (Aggregate.COUNT, Aggregate.SUM):
        raise QuestionError(
            f"{question.aggregate.value} is not answered with noise: ask for a sum of a column with a declared domain,"
            " or how many rows there are."
        )
    drawing = mechanisms or OpenDP()
    with connect(policy.source.url or "", options) as engine, open_catalog(policy, engine) as catalog:
        with open_source_table(engine, policy) as source:  # whatever is wrong shall be said before anything is spent
            spans = _spans(engine, source, policy, question)
            person = _person(engine, source, asked)
            summed = _summed(engine, source, policy, question, asked)
            people = find_people(policy, engine, catalog, source) if policy.history.is_kept else None
        sensitivity = _ONE if summed is None else summed.sensitivity
        if sensitivity > _MOST_SCALE * share:
            raise QuestionError(
                f"The noise of '{question.column}' would be too large for so small an epsilon; ask for more."
            )
        after = _spend(catalog, source, budget, asked.persons, question, share, sensitivity)
        if people is not None:
            catalog.enter_alone(people, LineKind.NOISE, ASKED, str(source), cost_text(share, budget.ledger))
        with open_source_table(engine, policy) as source:
            value = _value(engine, source, person, spans, summed)
    (noisy,) = drawing.add_noise([value], share, sensitivity)
    within = likely_noise(sensitivity, share)
    return NoisyAnswer(
        question=str(question),
        value=noisy if summed is None else summed.written(noisy),
        unit="rows" if asked.persons is None else "persons",
        epsilon=amount(share),
        within=within if summed is None else summed.written(within),
        ledger=budget.ledger,
        left=remainder(after.allowed(budget.limit) - after.consumed),
    )


def require_budgeted(policy: Policy) -> tuple[DifferentialPrivacy, PrivacyBudget]:
    """Check what needs neither the table nor a question.

    Raises PolicyError where questions to the policy's source can't be charged on a budget.
    """
    asked = mechanism_of(policy.privacy)
    if asked is None or policy.budget is None:
        raise PolicyError(
            "--epsilon is of a policy that asks for {model: differential-privacy, …} and names a budget, by which all"
            " answers and releases of the source are added up."
        )
    dialect_of_url(policy.source.url or "").answers_questions.require("source: ")
    if policy.source.table is None:
        raise PolicyError("source.file: questions are asked of a table; load the file into one.")
    catalog_place(policy)
    return asked, policy.budget


def _amount(epsilon: Fraction | str) -> Fraction:
    read = parse_decimal(epsilon) if isinstance(epsilon, str) else epsilon
    if read is None or not _LEAST_EPSILON <= read <= MOST_EPSILON:
        raise QuestionError(f"--epsilon must be a decimal number such as 0.1, above 0 and at most {MOST_EPSILON}.")
    return read


def _spans(engine: Engine, source: Relation, policy: Policy, question: Question) -> tuple[TypedCondition, ...]:
    quasi = [name for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER]
    return spans_of(question, engine.columns(source), quasi)


def _person(engine: Engine, source: Relation, asked: DifferentialPrivacy) -> Expression | None:
    """Write the expression that tells persons apart; None where rows are the unit."""
    if asked.persons is None:
        return None
    column = next((one for one in engine.columns(source) if one.name == asked.persons), None)
    if column is None:
        raise PolicyError(f"privacy: unit: the table has no column '{asked.persons}'.")
    return comparable(engine, Markup(Identifier(column.name)), column.kind)


def _summed(
    engine: Engine, source: Relation, policy: Policy, question: Question, asked: DifferentialPrivacy
) -> BoundedColumn | None:
    """Find the column of a sum with its bounds; None of a count."""
    if question.column is None:
        return None
    column = next((one for one in engine.columns(source) if one.name == question.column), None)
    return bounded_column(policy, question.column, column, asked.contribution)


def _value(
    engine: Engine,
    source: Relation,
    person: Expression | None,
    spans: tuple[TypedCondition, ...],
    summed: BoundedColumn | None,
) -> int:
    """Work out the answer without noise, a sum in units."""
    span_values = AskedTable(engine, source, person, k=1).span_values(spans)
    if summed is None:
        (count,) = engine.query_one("inquiries/questions/count_asked", source=source, person=person, spans=span_values)
        return int(count)
    (total,) = engine.query_one(
        "inquiries/questions/sum_asked",
        source=source,
        person=person,
        spans=span_values,
        value=Markup(Identifier(summed.column.name)),
        decimals=summed.decimals,
        low=summed.literal(summed.low),
        high=summed.literal(summed.high),
        low_units=summed.low,
        high_units=summed.high,
        limits=None if person is None else summed.limits,
    )
    return max(-_MOST_TOTAL, min(_MOST_TOTAL, int(total)))


def _spend(
    catalog: Catalog,
    source: Relation,
    budget: PrivacyBudget,
    unit: str | None,
    question: Question,
    epsilon: Fraction,
    sensitivity: int,
) -> Budget:
    use = MechanismUse(NOISE, epsilon, Fraction(sensitivity), sensitivity / epsilon)
    spending = Spending(budget.ledger, budget.limit, unit, ASKED, str(question), (use,))
    return catalog.spend(spending, catalog.identities(str(source), source))


@dataclass(frozen=True)
class BoundedColumn:
    """A column that is summed in units of its last decimal: values below `low` count as it, those above `high` as that.

    NULL adds nothing. most: the rows of a person that add, as far as a sum is between bounds too; 1 of rows.
    """

    column: Column
    decimals: int
    low: int
    high: int
    most: int

    @property
    def sensitivity(self) -> int:
        """The most by which the sum changes when a row, or a person, is added or removed."""
        return self.most * max(abs(self.low), abs(self.high))

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest sum of one person."""
        return min(0, self.most * self.low), max(0, self.most * self.high)

    def literal(self, bound: int) -> Decimal | int:
        """A bound as the column has it."""
        return Decimal(bound).scaleb(-self.decimals) if self.decimals else bound

    def written(self, units: int) -> str:
        """Write a sum as people read it."""
        return f"{Decimal(units).scaleb(-self.decimals):f}"


def bounded_column(policy: Policy, name: str, column: Column | None, most: int) -> BoundedColumn:
    """Find the bounds of a column by the domain that the policy declares; nothing is looked up.

    Raises QuestionError where it has none, PolicyError where it is no column of whole numbers or decimals.
    """
    attribute = policy.attributes.get(name)
    domain = None if attribute is None else attribute.domain
    if domain is None or column is None or attribute is None or attribute.is_omitted:
        raise QuestionError(
            f"'{name}' has no declared domain, {{from: …, below: …}}, and nothing else bounds what one row adds to a"
            " sum. Ask how many rows there are, or declare it."
        )
    decimals = 0 if column.kind is Kind.INTEGER else column.decimals
    if column.kind not in (Kind.INTEGER, Kind.DECIMAL) or decimals is None or decimals > _MOST_DECIMALS:
        raise PolicyError(
            f"'{name}' is {column.type}, and noise is added to whole numbers and to decimals of up to {_MOST_DECIMALS}"
            " digits after the point: ask of a view that has it as NUMERIC(18, 2) or the like."
        )
    unit = Fraction(10) ** decimals
    low, high = math.floor(domain.first * unit), math.ceil(Fraction(repr(domain.below)) * unit)
    bounded = BoundedColumn(column, decimals, low, high, most)
    if max(abs(low), abs(high)) * most > _MOST:
        raise PolicyError(f"'{name}' has a domain too wide for exact sums; declare a narrower one.")
    return bounded
