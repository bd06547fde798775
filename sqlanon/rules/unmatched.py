"""Values that the rules of a release know nothing of: hierarchies built for new rows have no place for them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.taxonomy import read_taxonomy
from sqlanon.policy import Policy
from sqlanon.rules.tables import RuleAttribute
from sqlanon.sql import Identifier, Text, expression
from sqlanon.values.text import text_of

SUPPRESSED_FOR = "hold values that no rule knows, or are in classes that violate a model"


@dataclass(frozen=True)
class UnmatchedValue:
    """SQL over a row `s` of the source that is true where no rule is about it, and what to say then.

    refused: whether the policy itself refuses the value, so that no choice of suppression is about it.
    """

    test: Markup
    problem: str
    refused: bool = False


Listing = Callable[[RuleAttribute, Sequence[str]], Markup]
"""SQL of all values that an attribute's hierarchy has, to stand in `= ANY (…)`."""


def literals(attribute: RuleAttribute, values: Sequence[str]) -> Markup:
    """The values themselves: for statements that are kept where only those may read who may read the rules."""
    del attribute
    return expression("ARRAY[{values}]", values=Markup(", ").join(Markup(Text(value)) for value in values))


def find_unmatched(
    engine: Engine, policy: Policy, attributes: Sequence[RuleAttribute], listing: Listing = literals
) -> list[UnmatchedValue]:
    """Everything that ends `sqlanon apply` with an error because of a value, unless its row may be suppressed."""
    return [*_refused_nulls(policy), *_unknown_values(engine, policy, attributes, listing)]


def row_filter_of(unmatched: Sequence[UnmatchedValue]) -> Markup | None:
    """Write the condition by which rows `s` stay where unmatched values are suppressed; None where all rows stay."""
    tests = [unmatched_value.test for unmatched_value in unmatched if not unmatched_value.refused]
    return expression("({tests}) IS NOT TRUE", tests=Markup(" OR ").join(tests)) if tests else None


def ending(unmatched: Sequence[UnmatchedValue], *, suppresses: bool) -> list[dict[str, Markup]]:
    """Those that end a job, for templates: where rows may be suppressed, only what the policy refuses."""
    kept = [unmatched_value for unmatched_value in unmatched if unmatched_value.refused or not suppresses]
    return [
        {"test": unmatched_value.test, "problem": Markup(Text(unmatched_value.problem))} for unmatched_value in kept
    ]


def _refused_nulls(policy: Policy) -> Iterator[UnmatchedValue]:
    for name, attribute in policy.attributes.items():
        if attribute.nulls == "refuse":
            test = expression("s.{c} IS NULL", c=Identifier(name))
            yield UnmatchedValue(test, f"Column '{name}' holds NULL, which the policy refuses.", refused=True)


def _unknown_values(
    engine: Engine, policy: Policy, attributes: Sequence[RuleAttribute], listing: Listing
) -> Iterator[UnmatchedValue]:
    """Of dates and intervals there are none: every value has its period, or its interval."""
    for attribute in attributes:
        hierarchy = policy.attributes[attribute.name].hierarchy
        value = expression("s.{c}", c=Identifier(attribute.name))
        text = text_of(engine.render, value, attribute.kind, attribute.type)
        if hierarchy is None:
            continue
        if hierarchy.mask is not None:
            assert attribute.height is not None
            test = expression("length({value}) > {most}", value=text, most=attribute.height)
            yield UnmatchedValue(
                test, f"Column '{attribute.name}' holds values longer than its mask, {attribute.height}."
            )
        elif hierarchy.kind in ("csv", "mapping") and hierarchy.unknown is None:
            lines = read_taxonomy(hierarchy, None, functools.partial(_wrong_taxonomy, attribute.name))
            known = listing(attribute, [line.value for line in lines])
            text = engine.render.macro("collate", text)
            yield UnmatchedValue(
                expression("NOT {value} = ANY ({known})", value=text, known=known),
                f"Column '{attribute.name}' holds values that its {hierarchy.kind} lacks: add them, or give it "
                "`unknown`, run the policy again, and freeze that run.",
            )


def _wrong_taxonomy(column: str, what: str) -> PolicyError:
    return PolicyError(f"Hierarchy of column '{column}': {what}")
