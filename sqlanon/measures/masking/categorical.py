"""Loss of columns of categories (Domingo-Ferrer, Torra 2001): distances, contingency tables, entropy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from sqlanon.errors import PolicyError
from sqlanon.measures.masking.compared import Compared, ComparedColumn
from sqlanon.measures.masking.scaling import rounded
from sqlanon.models.thresholds import logarithm_scale
from sqlanon.plan.measurements import portions
from sqlanon.results.masking import CategoriesLoss, CategoryLoss

MOST_TABLES = 5000
_TABLES = 100  # of a statement
_COLUMNS = 50
_Paired = Mapping[str, tuple[float, float]]


def categories_loss(compared: Compared, paired_rows: int | None, dimension: int) -> CategoriesLoss:
    """Measure the loss of all columns of categories.

    paired_rows: None where rows are not paired, and only contingency tables are compared.
    dimension: the most columns of a contingency table.

    Raises:
        PolicyError: that makes too many tables, or an order lacks categories of the data.
    """
    tables = _tables(len(compared.categories), dimension)
    sizes, differences = _compare_tables(compared, tables)
    paired: _Paired = {} if not paired_rows else _compare_rows(compared, paired_rows)
    columns = []
    for one, size in zip(compared.categories, sizes, strict=True):
        distance, bits = paired.get(one.name, (None, None))
        columns.append(CategoryLoss(one.name, distance, bits, size))
    cells = sum(math.prod(sizes[number] for number in table) for table in tables)
    ctbil = sum(differences)
    return CategoriesLoss(
        distance=rounded(math.fsum(distance for distance, _ in paired.values()) / len(paired)) if paired else None,
        ebil=rounded(math.fsum(bits for _, bits in paired.values())) if paired else None,
        ctbil=ctbil,
        actbil=rounded(ctbil / cells),
        dimension=dimension,
        tables=len(tables),
        cells=cells,
        columns=tuple(columns),
    )


def greatest_dimension(columns: int, wanted: int) -> int:
    """Return the most columns of a contingency table, at most as many as wanted, so that tables are not too many."""
    affordable = (one for one in range(wanted, 1, -1) if _count_tables(columns, one) <= MOST_TABLES)
    return next(affordable, 1)


def _count_tables(columns: int, dimension: int) -> int:
    return sum(math.comb(columns, size) for size in range(1, min(dimension, columns) + 1))


def _tables(columns: int, dimension: int) -> list[tuple[int, ...]]:
    """The sets of columns that have a contingency table."""
    wanted = range(1, min(dimension, columns) + 1)
    count = _count_tables(columns, dimension)
    if count > MOST_TABLES:
        raise PolicyError(
            f"{columns} columns of categories make {count:,} contingency tables of up to {dimension} dimensions, more"
            f" than {MOST_TABLES:,}: give a smaller --dimension, or fewer --columns."
        )
    return [table for size in wanted for table in itertools.combinations(range(columns), size)]


def _compare_tables(compared: Compared, tables: Sequence[tuple[int, ...]]) -> tuple[list[int], list[int]]:
    """Count the values of each column in both tables, and the differences between their contingency tables."""
    columns = [{"before": one.before, "after": one.after} for one in compared.categories]
    sizes, differences = [0] * len(columns), list[int]()
    for portion in portions(tables, _TABLES):
        counted = compared.engine.query(
            "measures/masking/compare_contingency_tables",
            source=compared.source,
            release=compared.release,
            columns=columns,
            tables=portion,
            sizes=not differences,
        )
        each = [0] * len(portion)
        for place, is_size, n in counted:
            (sizes if is_size else each)[place] = int(n)
        differences += each
    return sizes, differences


def _compare_rows(compared: Compared, rows: int) -> dict[str, tuple[float, float]]:
    """Measure the mean distance and the entropy-based loss of each column over paired rows."""
    scale = logarithm_scale(rows)
    measured: dict[str, tuple[float, float]] = {}
    for portion in portions(compared.categories, _COLUMNS):
        columns = [{"before": one.before, "after": one.after} for one in portion]
        for place, changed, unknown in compared.engine.query(
            "measures/masking/compare_categories", paired=compared.paired, columns=columns, scale=scale
        ):
            column = portion[place]
            distance = _ordinal_distance(compared, column, rows) if column.order else int(changed) / rows
            measured[column.name] = rounded(distance), rounded(int(unknown) / (scale * math.log(2)))
    return measured


def _ordinal_distance(compared: Compared, column: ComparedColumn, rows: int) -> float:
    """Measure the mean number of categories between, in terms of all; NULL is as far from any as can be."""
    ranks = {category: rank for rank, category in enumerate(column.order)}
    total, unknown = 0.0, 0
    for before, after, n in compared.engine.query(
        "measures/masking/count_changes", paired=compared.paired, before=column.before, after=column.after
    ):
        unknown += any(value is not None and value not in ranks for value in (before, after))
        if before is not None and after is not None:
            total += n * abs(ranks.get(before, 0) - ranks.get(after, 0)) / len(ranks)
        elif before != after:
            total += n
    if unknown:
        raise PolicyError(f"The order of '{column.name}' lacks categories of the data: list all of them.")
    return total / rows
