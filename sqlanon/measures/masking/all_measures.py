"""All measures of a release beside its source: loss, record linkage, and interval disclosure."""

from __future__ import annotations

import math
from typing import Any

from sqlanon.errors import PolicyError
from sqlanon.measures.masking.categorical import categories_loss
from sqlanon.measures.masking.compared import Compared, Link, LinkedGroups
from sqlanon.measures.masking.continuous import Statistics, measure_differences, measure_statistics, numbers_loss
from sqlanon.measures.masking.scaling import NumberRange, Ranges, measure_ranges, rounded
from sqlanon.results.masking import GroupLinkage, Intervals, Linkage, Masking, MaskingRisk, NumbersLoss

DIMENSION = 2  # of contingency tables


SAMPLE = 500  # rows that are linked


PERCENTS = range(1, 11)  # widths of intervals, in terms of the ranks or the standard deviation


_FARTHEST = 1e100  # standard deviations: squares of more are beyond doubles


def measure_masking(
    compared: Compared, *, dimension: int = DIMENSION, sample: int = SAMPLE, has_unique_link: bool = False
) -> Masking:
    """Measure a release's loss and risk. Each figure comes from an aggregate query.

    dimension: the most columns of a contingency table. sample: the most rows that are linked.
    has_unique_link: the link is known to tell the rows of both tables apart, and is not checked.

    Raises:
        PolicyError: a table is empty, numbers can't be compared, keys repeat, or no row of one is in the other.
    """
    ranges = _require_rows(compared)
    rows = [one.rows for one in ranges]
    if compared.link is not None and not has_unique_link:
        _require_keys(compared, compared.link)
    paired = None if compared.link is None else _count_paired(compared, rows[0])
    numbers, risk, groups = None, None, None
    if compared.numbers:
        numbers, risk, groups = _numbers(compared, ranges, paired is not None, sample)
    categories = categories_loss(compared, paired, dimension) if compared.categories else None
    return Masking(
        rows[0], rows[1], paired, compared.only_in_source, compared.only_in_release, numbers, categories, risk, groups
    )


def _require_rows(compared: Compared) -> tuple[Ranges, Ranges]:
    engine, names = compared.engine, [one.name for one in compared.numbers]
    before, after = [one.before for one in compared.numbers], [one.after for one in compared.numbers]
    source = measure_ranges(engine, compared.source, before, names, "source")
    release = measure_ranges(engine, compared.release, after, names, "release")
    empty = [side for side, one in (("source", source), ("release", release)) if not one.rows]
    if empty:
        raise PolicyError([f"The {side} has no rows: there is nothing to compare." for side in empty])
    return source, release


def _numbers(
    compared: Compared, ranges: tuple[Ranges, Ranges], is_paired: bool, sample: int
) -> tuple[NumbersLoss, MaskingRisk | None, GroupLinkage | None]:
    """Measure the loss of numbers, of paired rows their risk, and of groups how many rows find their own."""
    before, after = ranges
    engine = compared.engine
    statistics = (
        measure_statistics(engine, compared.source, [one.before for one in compared.numbers], before),
        measure_statistics(engine, compared.release, [one.after for one in compared.numbers], after),
    )
    differences = measure_differences(compared, before, after) if is_paired else None
    loss = numbers_loss(compared, before, after, statistics, differences)
    risk = masking_risk(compared, after, statistics, sample, loss.il6) if is_paired else None
    groups = None if compared.groups is None else link_groups(compared, compared.groups, statistics, sample)
    return loss, risk, groups


def _require_keys(compared: Compared, link: Link) -> None:
    """Raise PolicyError where a table's rows share keys."""
    names = ", ".join(f"'{one.name}'" for one in link.columns)
    sides = (
        ("source", compared.source, [one.before for one in link.columns]),
        ("release", compared.release, [one.after for one in link.columns]),
    )
    problems = []
    for side, rows, keys in sides:
        (shared,) = compared.engine.query_one("measures/masking/count_shared_keys", rows=rows, keys=keys)
        if shared:
            problems.append(
                f"Rows can't be paired by {names}: {int(shared):,} rows of the {side} share it with another. Name"
                " columns that tell rows apart."
            )
    if problems:
        raise PolicyError(problems)


def _count_paired(compared: Compared, rows: int) -> int:
    """Count the rows that have a partner, of so many rows of the source."""
    if compared.is_joined:
        return rows
    (paired,) = compared.engine.query_one("count_rows", table=compared.paired)
    if not paired:
        raise PolicyError("No row of the source has a row of the release with the same key: nothing can be paired.")
    return int(paired)


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
