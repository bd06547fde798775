"""Individual risk: of each member, by the members of its class here and by how many these stand for.

The weights of a class add up to an estimate F of its size in the population; its f members are the share f / F of them.
Given f, the size is taken as negative binomial, and the risk is the mean of its inverse (Benedetti and Franconi,
"Statistical and technological solutions for controlled data dissemination", 1998; in mu-Argus and sdcMicro). It is
exact here for every f, as by sdcMicro's method "exact"; docs/risk.md says how far their approximations are off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.source import RiskSource
from sqlanon.results.risk import HouseholdRisk, IndividualRisk, ShareAtRisk
from sqlanon.sql import Expression, Identifier, macro
from sqlanon.support.quantities import quantity

_DIGITS = 12  # significant: sums of doubles depend on their order


def individual_values(weight: Expression | float, thresholds: Sequence[float]) -> dict[str, Any]:
    """The values that statements of individual risks interpolate."""
    return {"weight": weight, "risk": RISK, "thresholds": list(thresholds)}


RISK = macro("risk.of_shared")  # of a member of a class


def individual_risk(counted: Sequence[tuple[Any, ...]], thresholds: Sequence[float], weights: str) -> IndividualRisk:
    """Add up the risks of all classes, which the database has by the number of their members."""
    members = sum(int(size) * int(classes) for size, classes, *_ in counted)
    total = sum(int(size) * float(risk) for size, _, risk, *_ in counted)
    greatest = max((float(most) for _, _, _, most, *_ in counted), default=0.0)
    above = [sum(int(row[0]) * int(row[4 + place]) for row in counted) for place in range(len(thresholds))]
    return IndividualRisk(rounded(total), rounded(greatest), at_risk(thresholds, above, members), weights)


def measure_households(source: RiskSource, thresholds: Sequence[float], weight: Expression | float) -> HouseholdRisk:
    """Measure the risk 1 - (1 - r_1) (1 - r_2) … of each household, r being the risks of its members.

    Raises PolicyError where a row has no household.
    """
    assert source.household is not None
    columns = [(source.house, Identifier("household"))]
    if source.subject is not None:
        columns.append((source.person, Identifier("person_of_household")))
    households, members, total, greatest, *above = source.engine.query_one(
        "inquiries/risk/measure_households",
        table=source.table,
        keys=source.keys,
        person=source.person,
        columns=columns,
        **individual_values(weight, thresholds),
    )
    return HouseholdRisk(
        int(households),
        rounded(float(total)),
        rounded(float(greatest)),
        at_risk(thresholds, above, int(members)),
        source.household.name,
    )


def require_weights(source: RiskSource) -> None:
    """Raise PolicyError where a weight or a household can't be used, with how many rows."""
    if source.weights is None and source.household is None:
        return
    values = {"table": source.table, "weight": source.weight(), "household": source.house, "person": source.person}
    rows, unweighted, unhoused, uneven = map(int, source.engine.query_one("inquiries/risk/measure_weights", **values))
    problems = []
    if source.weights is not None and unweighted:
        problems.append(
            f"The weights '{source.weights.name}' are NULL, 0, negative or no numbers below 1e100 in {unweighted:,} of"
            f" {rows:,} rows: each row stands for at least some part of a member of the population."
        )
    if source.weights is not None and source.subject is not None and uneven:
        problems.append(f"The weights '{source.weights.name}' differ among the rows of {quantity(uneven, 'person')}.")
    if source.household is not None and unhoused:
        problems.append(f"The household '{source.household.name}' is NULL in {unhoused:,} of {rows:,} rows.")
    if problems:
        raise PolicyError(problems)


def at_risk(thresholds: Sequence[float], above: Sequence[int], members: int) -> tuple[ShareAtRisk, ...]:
    """The members above each threshold, with their share of all."""
    pairs = zip(thresholds, map(int, above), strict=True)
    return tuple(ShareAtRisk(threshold, count, count / max(1, members)) for threshold, count in pairs)


def rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
