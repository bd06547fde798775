"""Top and bottom coding as the policy has it: what raw values stand for, and whether a quantile is one.

Nothing here reads what a search coded values with.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.hierarchies.limits import Limits, as_decimal, literal
from sqlanon.plan.plan import Attribute, Plan
from sqlanon.policy import Quantile
from sqlanon.sql import Expression, Identifier, Relation, macro


def clamped(engine: Engine, raw: Expression, column: Column, limits: Limits) -> Expression:
    """The number that a raw value stands for: itself, or the limit that it is beyond; NULL and NaN are themselves."""
    if not limits:
        return raw
    bottom, top = (None if end is None else literal(end, column) for end in (limits.bottom, limits.top))
    return macro("limits.clamped", raw, bottom, top, engine.render.macro("is_a_number", raw, column.kind.value))


def is_limit(value: Expression, limit: Decimal | None, column: Column) -> Expression | bool:
    """Test whether a value that is not NULL stands for all beyond it."""
    return False if limit is None else macro("limits.is_limit", value, literal(limit, column))


@dataclass(frozen=True)
class Checked:
    """The limits of a column by its policy, and the rows whose number shows that a claimed quantile is none."""

    limits: Limits
    violations: int = 0


def check_limits(
    engine: Engine,
    plan: Plan,
    attribute: Attribute,
    witness: Relation,
    raw: str,
    *,
    whole: bool,
) -> Checked:
    """The limits that the policy says as numbers; quantiles as claimed, if they are quantiles of the raw values.

    raw: the column of the witness with the raw values. whole: whether those are all rows of
        the source; of a sample quantiles are not looked at.
    """
    ends: list[Decimal | None] = []
    wrong = 0
    section, claimed = plan.policy.attributes[attribute.name], attribute.limits
    for specified, number in ((section.bottom, claimed.bottom), (section.top, claimed.top)):
        if not isinstance(specified, Quantile):
            ends.append(None if specified is None else as_decimal(specified))
            continue
        ends.append(number)
        if whole:
            wrong += _untrue_quantile(
                engine, witness, Markup(Identifier(raw)), attribute.column, specified.quantile, number
            )
    return Checked(Limits(*ends), wrong)


def _untrue_quantile(
    engine: Engine, witness: Relation, raw: Expression, column: Column, share: float, number: Decimal | None
) -> int:
    """The finite numbers of a column whose quantile is claimed to be another number, 0 where it is that one."""
    end = macro("values.list", [None if number is None else literal(number, column)])
    is_finite = engine.render.macro("is_finite_number", raw, column.kind.value)
    total, below, reached = engine.query_one(
        "verification/count_reached", witness=witness, raw=raw, end=end, is_finite=is_finite
    )
    is_true = not total or (number is not None and below < share * total <= reached)
    return 0 if is_true else int(total)
