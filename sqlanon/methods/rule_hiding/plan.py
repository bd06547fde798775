"""Plans of releases with hidden rules: a policy resolved against its table, every rule as numbered items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.methods.rule_hiding.policy import HiddenRule, Side, hiding_of
from sqlanon.plan.drawn_plan import DrawnPlan, column_problems, find_places, is_released
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy
from sqlanon.policy.document import path_text
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation
from sqlanon.support.quantities import quantity
from sqlanon.values.expressions import comparable, text_of

WORD_BITS = 62  # of a whole number in which items are bits
RULES = ("privacy", 0, "rules")


@dataclass(frozen=True)
class RuleItem:
    """An item of some rule: a value of a column, by its text, and its bit among those of all rules."""

    number: int
    column: Column
    text: str

    @property
    def word(self) -> int:
        return self.number // WORD_BITS

    @property
    def bit(self) -> int:
        return 1 << self.number % WORD_BITS


@dataclass(frozen=True)
class SensitiveRule:
    """A rule to be hidden, which is mined where it has both a support and a confidence.

    place: in the policy's list, from 0 on.
    """

    place: int
    left: tuple[RuleItem, ...]
    right: tuple[RuleItem, ...]
    support: int
    confidence: Fraction

    @property
    def items(self) -> tuple[RuleItem, ...]:
        return (*self.left, *self.right)

    def is_mined(self, both: int, left: int) -> bool:
        """Tell whether the rule can be mined where so many transactions have all its items, and so many the left."""
        return both >= self.support and both >= self.confidence * left

    def excess(self, both: int, left: int) -> int:
        """Count the transactions of the rule that must lose an item of its right side; 0 where it is not mined."""
        below_confidence = -(-self.confidence.numerator * left // self.confidence.denominator) - 1
        return max(0, both - max(self.support - 1, below_confidence)) if self.is_mined(both, left) else 0


@dataclass(frozen=True)
class HidingPlan(DrawnPlan):
    """Everything that a run needs to know to hide rules.

    columns: of the release, in the source's order. items: of all rules, in the order of their numbers.
    transaction, item: the columns of transactions; None where each row is one.
    """

    rows: int
    columns: tuple[Column, ...]
    items: tuple[RuleItem, ...]
    rules: tuple[SensitiveRule, ...]
    transaction: Column | None
    item: Column | None
    warnings: tuple[str, ...] = ()

    @property
    def words(self) -> range:
        """The numbers of the whole numbers that hold the items of a transaction."""
        return range(self.items[-1].word + 1)

    @property
    def item_columns(self) -> list[Column]:
        """The columns whose values are items of some rule, in the order of the source."""
        names = {item.column.name for item in self.items}
        return [column for column in self.columns if column.name in names]

    def place_of(self, column: Column) -> int:
        """Find the place of a column in the release."""
        return self.columns.index(column)


def resolve_hiding(policy: Policy, engine: Engine, *, replace: bool = False) -> HidingPlan:
    """Resolve a policy that hides rules; a scan counts the items of these.

    Raises one PolicyError with every problem; AccessError where the source may not be read.
    """
    source, release, problems = find_places(policy, engine, replace)
    with engine.transaction():
        hold_trusted(policy, engine, source)
        there = engine.columns(source)
        problems += column_problems(policy, there, str(source))
        if problems:
            raise PolicyError(problems)
        columns = tuple(one for one in there if is_released(policy, one))
        plan = number_items(policy, source, release, columns)
        problems = list(_value_problems(engine, plan))
        if problems:
            raise PolicyError(problems)
        (rows,) = engine.query_one("count_rows", table=source)
    return HidingPlan(**{**vars(plan), "rows": int(rows)})


def item_text(engine: Engine, column: Column, value: Expression) -> Expression:
    """Write the expression by which values of a column are told apart as items; NULL for NULL, which is none."""
    return comparable(engine, text_of(engine.render, value, column.kind, column.type), Kind.TEXT)


def number_items(policy: Policy, source: Relation, release: Relation, columns: tuple[Column, ...]) -> HidingPlan:
    """Number the items of all rules in the order in which the policy names them; no table is looked at.

    columns: those that are released.
    """
    algorithm, model = hiding_of(policy)
    by_name = {column.name: column for column in columns}
    item = None if algorithm.item is None else by_name[algorithm.item]
    items: dict[tuple[str, str], RuleItem] = {}

    def numbered(side: Side) -> tuple[RuleItem, ...]:
        keys = list(side.items()) if isinstance(side, dict) else [(algorithm.item or "", text) for text in side]
        for key in keys:
            items.setdefault(key, RuleItem(len(items), by_name[key[0]], key[1]))
        return tuple(items[key] for key in keys)

    def sensitive(place: int, rule: HiddenRule) -> SensitiveRule:
        confidence = model.confidence if rule.confidence is None else rule.confidence
        return SensitiveRule(
            place, numbered(rule.if_), numbered(rule.then), rule.support or model.support, Fraction(str(confidence))
        )

    rules = tuple(sensitive(place, rule) for place, rule in enumerate(model.rules))
    transaction = None if algorithm.transaction is None else by_name[algorithm.transaction]
    return HidingPlan(policy, source, release, 0, columns, tuple(items.values()), rules, transaction, item)


def _value_problems(engine: Engine, plan: HidingPlan) -> Iterator[str]:
    """Name rules with values that no row has, and rows whose transaction is not known."""
    if plan.transaction is not None:
        value = Markup(Identifier(plan.transaction.name))
        (unknown,) = engine.query_one("methods/rule_hiding/count_unknown", source=plan.source, value=value)
        if unknown:
            yield (
                f"algorithm.transaction: '{plan.transaction.name}' is NULL in {quantity(unknown, 'row')}, whose"
                " transactions are not known: leave them out in a view."
            )
    present = {item for column in plan.item_columns for item in _present(engine, plan, column)}
    for rule in plan.rules:
        for item in rule.items:
            if item not in present:
                side = "if" if item in rule.left else "then"
                yield (
                    f"{path_text((*RULES, rule.place, side))}: no row has a value of '{item.column.name}' that it"
                    " names; write it as the release shows it."
                )


def _present(engine: Engine, plan: HidingPlan, column: Column) -> list[RuleItem]:
    """List the items among the values of a column."""
    items = {item.text: item for item in plan.items if item.column == column}
    rows = engine.query(
        "methods/rule_hiding/list_items",
        source=plan.source,
        text=item_text(engine, column, Markup(Identifier(column.name))),
        texts=[RedactedValue(text) for text in items],
    )
    return [items[str(text)] for (text,) in rows]
