"""All measures of a release beside its source."""

from __future__ import annotations

from sqlanon.errors import PolicyError
from sqlanon.measures.masking.categorical import categories_loss
from sqlanon.measures.masking.compared import Compared, Link
from sqlanon.measures.masking.continuous import measure_differences, measure_statistics, numbers_loss
from sqlanon.measures.masking.linking import link_groups, masking_risk
from sqlanon.measures.masking.scaling import Ranges, measure_ranges
from sqlanon.results.masking import GroupLinkage, Masking, MaskingRisk, NumbersLoss

DIMENSION = 2  # of contingency tables
SAMPLE = 500  # rows that are linked


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
