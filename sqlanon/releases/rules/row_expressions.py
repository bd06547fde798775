"""A row `s` of the source as SQL: its values, texts and labels, and tests for rows that no rule is about."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.dialects import dialect_named
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.inline import has_keys, join_labels
from sqlanon.hierarchies.mask import kept_part, mask_label
from sqlanon.hierarchies.taxonomy import read_taxonomy
from sqlanon.plan.checks import released_names
from sqlanon.plan.plan import Plan
from sqlanon.policy import Hierarchy, Policy, Role
from sqlanon.releases.rules.store_rules import RuleAttribute, StoredRules
from sqlanon.sql import Expression, Identifier, Text, macro
from sqlanon.staging.labels import EVERYTHING
from sqlanon.values.expressions import is_short, text_of
from sqlanon.work.workspace import Workspace


class RowSpelling:
    """SQL expressions of a SELECT about a row `s` of the source.

    person: a column of the result, `name` and `value`, that says whose row it is, where somebody asks for it.
    """

    def __init__(self, stored: StoredRules, policy: Policy, person: dict[str, Any] | None = None) -> None:
        self.attributes, self.policy = stored.attributes, policy
        self._person = [] if person is None else [person]
        self.dialect = dialect_named(str(stored.content["dialect"]))
        self.render = self.dialect.renderer()
        self._joined: dict[int, RuleAttribute] = {}

    def joins(self, *, keyed: bool = False) -> list[Expression]:
        """List the joins of the labels that were asked for; `keyed`, if keys are read there too."""
        return [self._join(attribute, keyed) for attribute in self._joined.values()]

    def columns(self, cells: dict[int, list[Expression]]) -> list[dict[str, Any]]:
        """The columns of the result in the policy's order, and whose row it is."""
        numbers = {a.name: a.number for a in self.attributes}
        columns: list[dict[str, Any]] = []
        for name, attribute in self.policy.attributes.items():
            if attribute.role is Role.QUASI_IDENTIFIER:
                pairs = zip(released_names(name, attribute), cells[numbers[name]], strict=True)
                columns += [{"name": Identifier(released), "value": cell} for released, cell in pairs]
            elif not attribute.is_omitted:
                columns.append({"name": Identifier(name), "value": column_of(name)})
        return columns + self._person

    def kept(self) -> list[dict[str, Any]]:
        """The columns of the result that are the source's own, and whose row it is."""
        names = [
            name
            for name, one in self.policy.attributes.items()
            if one.role is not Role.QUASI_IDENTIFIER and not one.is_omitted
        ]
        return [{"name": Identifier(name), "value": column_of(name)} for name in names] + self._person

    def value(self, attribute: RuleAttribute) -> Expression:
        """The value of a row, or the limit that it is beyond: cuts lie between the limits, groups need not."""
        value = column_of(attribute.name)
        return value if attribute.height is None else attribute.limits.coded(self.render, value, attribute.column)

    def text(self, attribute: RuleAttribute) -> Expression:
        return text_of(self.render, self.value(attribute), attribute.kind, attribute.type)

    def label(self, attribute: RuleAttribute, level: int) -> Expression:
        """The label of a value at a level of its hierarchy."""
        assert attribute.height is not None
        if level == attribute.height:
            return Markup(Text(EVERYTHING))
        hierarchy = self._hierarchy(attribute)
        opened = [one for one in attribute.opened if one.level == level]
        if opened:
            label = self.text(attribute) if level == 0 else self._joined_column(attribute, f"l{level}")
            ends = [{"label": Text(one.label), "shown": Text(one.shown)} for one in opened]
            return macro("recoding.opened", label, ends)
        if level == 0:
            return self.text(attribute)
        if hierarchy.mask is not None:
            return mask_label(self.text(attribute), hierarchy.mask, attribute.height - level, level)
        label = self._joined_column(attribute, f"l{level}")
        if hierarchy.unknown is None:
            return label
        return macro("recoding.label_or", label, Text(hierarchy.unknown))

    def key(self, attribute: RuleAttribute, level: int) -> Expression | None:
        """Write a cheaper stand-in for the label of a value at a level, if there is one; NULL for NULL alone."""
        if level == 0:
            return self.value(attribute) if is_short(attribute.column) else None
        hierarchy = self._hierarchy(attribute)
        if hierarchy.mask is not None:
            return self._kept(attribute, hierarchy.mask, level)
        if not has_keys(hierarchy, attribute.column):
            return None
        key = self._joined_column(attribute, f"k{level}")
        return macro("recoding.unless_null", self.value(attribute), key)

    def _kept(self, attribute: RuleAttribute, side: str, level: int) -> Expression:
        """Write the part of a value's text that a mask leaves."""
        assert attribute.height is not None
        return kept_part(self.text(attribute), side, attribute.height - level)

    def _joined_column(self, attribute: RuleAttribute, name: str) -> Expression:
        """A column of what is joined to the row for an attribute; a value that a taxonomy lacks has NULL there."""
        self._joined[attribute.number] = attribute
        return macro("codes.of_entry", _alias(attribute), Identifier(name))

    def _join(self, attribute: RuleAttribute, keyed: bool) -> Expression:
        hierarchy, row = self._hierarchy(attribute), (attribute.column, self.value(attribute), self.text(attribute))
        return join_labels(self.render, hierarchy, *row, _alias(attribute), keyed=keyed)

    def _hierarchy(self, attribute: RuleAttribute) -> Hierarchy:
        hierarchy = self.policy.attributes[attribute.name].hierarchy
        assert hierarchy is not None
        return hierarchy


def _alias(attribute: RuleAttribute) -> Identifier:
    return Identifier(f"h{attribute.number}")


def column_of(name: str) -> Expression:
    """A column of the row."""
    return macro("codes.in_source", Identifier(name))


SUPPRESSED_FOR = "hold values that no rule knows, or are in classes that violate a model"


@dataclass(frozen=True)
class UnmatchedValue:
    """SQL over a row `s` of the source that is true where no rule is about it, and what to say then.

    refused: whether the policy itself refuses the value, so that no choice of suppression is about it.
    """

    test: Expression
    problem: str
    refused: bool = False


Listing = Callable[[RuleAttribute, Sequence[str]], Expression]

"""SQL of all values that an attribute's hierarchy has, to stand in `IN (…)`."""


def literals(attribute: RuleAttribute, values: Sequence[str]) -> Expression:
    """The values themselves: for statements that are kept where only those may read who may read the rules."""
    del attribute
    return macro("values.list", [Text(value) for value in values])


def find_unmatched(
    engine: Engine, policy: Policy, attributes: Sequence[RuleAttribute], listing: Listing = literals
) -> list[UnmatchedValue]:
    """Everything that ends `sqlanon apply` with an error because of a value, unless its row may be suppressed."""
    return [*_refused_nulls(policy), *_unknown_values(engine, policy, attributes, listing)]


def row_filter_of(unmatched: Sequence[UnmatchedValue]) -> Expression | None:
    """Write the condition by which rows `s` stay where unmatched values are suppressed; None where all rows stay."""
    tests = [unmatched_value.test for unmatched_value in unmatched if not unmatched_value.refused]
    return macro("recoding.is_none_of", tests) if tests else None


def ending(unmatched: Sequence[UnmatchedValue], *, suppresses: bool) -> list[dict[str, Expression]]:
    """Those that end a job, for templates: where rows may be suppressed, only what the policy refuses."""
    kept = [unmatched_value for unmatched_value in unmatched if unmatched_value.refused or not suppresses]
    return [
        {"test": unmatched_value.test, "problem": Markup(Text(unmatched_value.problem))} for unmatched_value in kept
    ]


def _refused_nulls(policy: Policy) -> Iterator[UnmatchedValue]:
    for name, attribute in policy.attributes.items():
        if attribute.nulls == "refuse":
            test = macro("recoding.is_null", column_of(name))
            yield UnmatchedValue(test, f"Column '{name}' holds NULL, which the policy refuses.", refused=True)


def _unknown_values(
    engine: Engine, policy: Policy, attributes: Sequence[RuleAttribute], listing: Listing
) -> Iterator[UnmatchedValue]:
    """Of dates and intervals there are none: every value has its period, or its interval."""
    for attribute in attributes:
        hierarchy = policy.attributes[attribute.name].hierarchy
        text = text_of(engine.render, column_of(attribute.name), attribute.kind, attribute.type)
        if hierarchy is None:
            continue
        if hierarchy.mask is not None:
            assert attribute.height is not None
            test = macro("recoding.is_longer", text, attribute.height)
            yield UnmatchedValue(
                test, f"Column '{attribute.name}' holds values longer than its mask, {attribute.height}."
            )
        elif hierarchy.kind in ("csv", "mapping") and hierarchy.unknown is None:
            lines = read_taxonomy(hierarchy, None, functools.partial(_wrong_taxonomy, attribute.name))
            known = listing(attribute, [line.value for line in lines])
            text = engine.render.macro("collate", text)
            yield UnmatchedValue(
                macro("recoding.is_unlisted", text, known),
                f"Column '{attribute.name}' holds values that its {hierarchy.kind} lacks: add them, or give it "
                "`unknown`, run the policy again, and freeze that run.",
            )


def _wrong_taxonomy(column: str, what: str) -> PolicyError:
    return PolicyError(f"Hierarchy of column '{column}': {what}")


@dataclass(frozen=True)
class RowFilter:
    """The condition by which rows `s` of a source stay, how many do, and how many do not."""

    condition: Expression
    rows: int
    unmatched: int


def find_row_filter(engine: Engine, workspace: Workspace, plan: Plan, stored: StoredRules) -> RowFilter | None:
    """Find the source rows that rules are about; None if they are about all. In the transaction that codes them."""

    def listing(attribute: RuleAttribute, values: Sequence[str]) -> Expression:
        """The values of a hierarchy in a table, as no statement of a run may show them."""
        known = workspace.table("known", attribute.number)
        engine.run("releases/rules/create_known", known=known)
        engine.load(known, ["value"], [(value,) for value in values])
        return macro("recoding.values_of", known)

    condition = row_filter_of(find_unmatched(engine, plan.policy, stored.attributes, listing))
    if condition is None:
        return None
    rows, unmatched = engine.query_one("releases/rules/count_unmatched", source=plan.source, row_filter=condition)
    return RowFilter(condition, rows, unmatched) if unmatched else None
