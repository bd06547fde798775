"""Risk of masked numbers: distance-based record linkage (Domingo-Ferrer, Torra 2001) and interval disclosure
(Mateo-Sanz, Sebé, Domingo-Ferrer 2004)."""

from __future__ import annotations

import math
from typing import Any

from sqlanon.measures.masking.compared import Compared, LinkedGroups
from sqlanon.measures.masking.continuous import Statistics
from sqlanon.measures.masking.scaling import NumberRange, Ranges, rounded
from sqlanon.results.masking import GroupLinkage, Intervals, Linkage, MaskingRisk

PERCENTS = range(1, 11)  # widths of intervals, in terms of the ranks or the standard deviation
_FARTHEST = 1e100  # standard deviations: squares of more are beyond doubles


def masking_risk(
    compared: Compared, after: Ranges, statistics: tuple[Statistics, Statistics], sample: int, il6: float | None
) -> MaskingRisk:
    """Measure linkage and interval disclosure on a sample of paired rows, and weigh them with the loss."""
    linkage = _linkage(compared, statistics, sample)
    intervals = _intervals(compared, after, statistics[1], sample)
    score = None
    if linkage is not None and il6 is not None:
        risk = 100 * linkage.nearest + 50 * (intervals.rank + intervals.deviation)
        score = rounded(il6 / 2 + risk / 4)
    return MaskingRisk(linkage, intervals, score)


def link_groups(
    compared: Compared, groups: LinkedGroups, statistics: tuple[Statistics, Statistics], sample: int
) -> GroupLinkage | None:
    """Link sampled rows to the group whose released numbers are nearest; None where no column has two values."""
    columns, ends = _distances(compared, statistics)
    if not columns:
        return None
    rows, nearest, blind = compared.engine.query_one(
        "measures/masking/link_groups",
        columns=columns,
        ends=ends,
        group_of_source=groups.source,
        group_of_release=groups.release,
        key=groups.key,
        source=compared.source,
        release=compared.release,
        sample=sample,
    )
    return GroupLinkage(int(rows), *(rounded(float(value) / int(rows)) for value in (nearest, blind))) if rows else None


def _linkage(compared: Compared, statistics: tuple[Statistics, Statistics], sample: int) -> Linkage | None:
    """Link sampled rows to the nearest released numbers, in units of the source's standard deviations.

    None where no row knows all numbers, or no column has two values.
    """
    columns, ends = _distances(compared, statistics)
    if not columns:
        return None
    rows, nearest, picked, blind = compared.engine.query_one(
        "measures/masking/link_rows",
        columns=columns,
        ends=ends,
        source=compared.source,
        **_sampled(compared, sample),
    )
    if not rows:
        return None
    return Linkage(int(rows), *(rounded(float(value) / int(rows)) for value in (nearest, picked, blind)))


def _distances(
    compared: Compared, statistics: tuple[Statistics, Statistics]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The values for templates that measure distances in standard deviations: of columns, and of their ends."""
    source, release = statistics
    linked = [
        (one, source.ranges[place], source.deviation(place))
        for place, one in enumerate(compared.numbers)
        if _has_distances(source.ranges[place], release.ranges[place], source.deviation(place))
    ]
    columns = [
        {"before": one.before, "after": one.after, "share": ranged.width / deviation}
        for one, ranged, deviation in linked
    ]
    return columns, [ranged.end(one.before) for one, ranged, _ in linked]


def _sampled(compared: Compared, sample: int) -> dict[str, Any]:
    """The values for templates that look at a sample of paired rows."""
    assert compared.link is not None
    return {"paired": compared.paired, "release": compared.release, "key": compared.link.key, "sample": sample}


def _has_distances(source: NumberRange, release: NumberRange, deviation: float) -> bool:
    """Tell whether a column's distances are numbers: the source's values differ, and no other is too far from them."""
    if not source.known or not release.known or deviation == 0:
        return False
    ends = (source.low, source.high, release.low, release.high)
    return max(abs(end - source.origin) for end in ends) / deviation < _FARTHEST


def _share(deviation: float, ranged: NumberRange) -> float:
    """A deviation in terms of the width of the range; 0 where all numbers are equal."""
    return 0.0 if ranged.is_constant else deviation / ranged.width


def _intervals(compared: Compared, after: Ranges, release: Statistics, sample: int) -> Intervals:
    """Measure interval disclosure: the means over the columns and the widths."""
    ranged = list(zip(compared.numbers, after.columns, strict=True))
    columns = [
        {
            "before": one.before,
            "after": one.after,
            "known": released.known,
            "ranks": [released.known * percent // 100 for percent in PERCENTS],
            "shares": [_share(release.deviation(place), released) * percent / 100 for percent in PERCENTS],
        }
        for place, (one, released) in enumerate(ranged)
    ]
    measured = compared.engine.query(
        "measures/masking/measure_intervals",
        columns=columns,
        ends=[released.end(one.after) for one, released in ranged],
        **_sampled(compared, sample),
    )
    known = [(int(n), int(ranks), int(widths)) for _, n, ranks, widths in measured if n]
    rank, deviation = (
        rounded(math.fsum(row[place] / row[0] for row in known) / (len(PERCENTS) * max(len(known), 1)))
        for place in (1, 2)
    )
    return Intervals(max((n for n, _, _ in known), default=0), rank, deviation)
