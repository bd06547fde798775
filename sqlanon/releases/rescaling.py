"""Centres rescaled so that every column of numbers keeps its variance.

With mean m and variance m2 of a column as the centres show it, and u and u2 of the same rows in the source, a centre x
is shown as u + (x - m) * sqrt(u2 / m2). All four come from sums of whole numbers, of 2^-60 of the column's range or its
square, so that every engine shows the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlanon.encoding.coordinates import LARGEST_EXPONENT, Scale
from sqlanon.engines.base import Engine
from sqlanon.errors import ProtectionError
from sqlanon.sql import Expression, RedactedValue, Relation
from sqlanon.work.workspace import Workspace

FIXED = 2**60  # units to 1, in sums of numbers between -1 and 1
LEAST_SHARE = 1e-12  # of a column's variance that its centres have, below which it is the noise of rounding


@dataclass(frozen=True)
class Stretch:
    """The line by which the centres of a column are moved: its mean, the mean of the centres, and the factor."""

    mean: RedactedValue
    shown_mean: RedactedValue
    factor: RedactedValue


def rescale_centres(
    engine: Engine,
    workspace: Workspace,
    assigned: Relation,
    regions: Relation,
    centres: Sequence[dict[str, Any]],
    order: Sequence[Expression],
) -> Relation:
    """Create the regions anew with rescaled numbers; `centres` are the values of the statement that wrote them.

    Raises ProtectionError where the rows of a column differ and its centres don't.
    """
    numbers = [one for one in centres if one["scale"] is Scale.CONTINUOUS]
    stretches = _stretches(engine, assigned, regions, numbers)
    rescaled = workspace.table("rescaled")
    cells = [{"cell": one["cell"], "stretch": stretches.get(one["number"])} for one in centres]
    engine.run("releases/rescale_centres", rescaled=rescaled, regions=regions, cells=cells, order=order)
    workspace.drop(regions)
    return rescaled


def _stretches(
    engine: Engine, assigned: Relation, regions: Relation, numbers: Sequence[dict[str, Any]]
) -> dict[int, Stretch]:
    """Measure the stretch of each column that is not constant."""
    ranges = list(map(float, engine.query_one("releases/measure_ranges", assigned=assigned, numbers=numbers)))
    least = math.ldexp(1.0, -LARGEST_EXPONENT)
    varying = [
        one | {"centre": RedactedValue(low / 2 + high / 2), "factor": RedactedValue(_scale(high / 2 - low / 2))}
        for one, low, high in zip(numbers, ranges[::2], ranges[1::2], strict=True)
        if high / 2 - low / 2 > least
    ]
    if not varying:
        return {}
    rows, shown = engine.query("releases/measure_spreads", assigned=assigned, regions=regions, numbers=varying)
    return {
        one["number"]: _stretch(one, _mean_and_variance(rows, place), _mean_and_variance(shown, place))
        for place, one in enumerate(varying)
    }


def _scale(half: float) -> float:
    """Find the power of two by which differences of so much at most come to lie between -1 and 1."""
    return math.ldexp(1.0, -math.frexp(half)[1])


def _mean_and_variance(row: Sequence[Any], place: int) -> tuple[Fraction, Fraction]:
    """Read mean and variance out of the sums."""
    rows, total, squares = (int(row[column]) for column in (1, 2 + 2 * place, 3 + 2 * place))
    mean = Fraction(total, rows * FIXED)
    return mean, Fraction(squares, rows * FIXED) - mean**2


def _stretch(one: dict[str, Any], rows: tuple[Fraction, Fraction], shown: tuple[Fraction, Fraction]) -> Stretch:
    (mean, variance), (shown_mean, shown_variance) = rows, shown
    if shown_variance <= LEAST_SHARE * float(variance):
        raise ProtectionError(
            f"All clusters have the same mean in column '{one['name']}', so that keep: variance has nothing to rescale;"
            " leave it out, or ask for smaller clusters."
        )
    centre, factor = float(one["centre"].value), float(one["factor"].value)
    return Stretch(
        RedactedValue(centre + float(mean) / factor),
        RedactedValue(centre + float(shown_mean) / factor),
        RedactedValue(math.sqrt(variance / shown_variance)),
    )
