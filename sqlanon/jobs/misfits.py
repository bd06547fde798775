"""Values that the rules of a release know nothing of: `sqlanon apply` finds them when it builds hierarchies."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.taxonomy import read_taxonomy
from sqlanon.policy import Policy
from sqlanon.rules.tables import RuleAttribute
from sqlanon.sql import Identifier, Text, expression
from sqlanon.text import text_of


@dataclass(frozen=True)
class Misfit:
    """SQL over a row `s` of the source that is true where no rule is about it, and what to say then."""

    test: Markup
    problem: str


def find_misfits(engine: Engine, policy: Policy, attributes: Sequence[RuleAttribute]) -> list[Misfit]:
    """Everything that ends `sqlanon apply` with an error because of a value."""
    return [*_refused_nulls(policy), *_unknown_values(engine, policy, attributes)]


def _refused_nulls(policy: Policy) -> Iterator[Misfit]:
    for name, attribute in policy.attributes.items():
        if attribute.nulls == "refuse":
            test = expression("s.{c} IS NULL", c=Identifier(name))
            yield Misfit(test, f"Column '{name}' holds NULL, which the policy refuses.")


def _unknown_values(engine: Engine, policy: Policy, attributes: Sequence[RuleAttribute]) -> Iterator[Misfit]:
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
            yield Misfit(test, f"Column '{attribute.name}' holds values longer than its mask, {attribute.height}.")
        elif hierarchy.kind in ("csv", "mapping") and hierarchy.unknown is None:
            lines = read_taxonomy(hierarchy, None, functools.partial(_wrong_taxonomy, attribute.name))
            known = Markup(", ").join(Markup(Text(line.value)) for line in lines)
            test = expression(
                "NOT {value} = ANY (ARRAY[{known}])", value=engine.render.macro("collate", text), known=known
            )
            yield Misfit(
                test,
                f"Column '{attribute.name}' holds values that its {hierarchy.kind} lacks: add them, or give it "
                "`unknown`, run the policy again, and freeze that run.",
            )


def _wrong_taxonomy(column: str, what: str) -> PolicyError:
    return PolicyError(f"Hierarchy of column '{column}': {what}")
