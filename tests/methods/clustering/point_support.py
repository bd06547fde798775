"""Points for searches of clusters, as a run's statements make them, and the clusters that a search wrote."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlanon.encoding.coordinates import Coordinate, Scale
from sqlanon.engines.base import Engine
from sqlanon.releases.clustering import Points
from sqlanon.sql import Relation, Statement

NUMBERS = tuple(Coordinate(number, None) for number in range(2))  # type: ignore[arg-type]


def load_table(
    engine: Engine,
    table: Relation,
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    codes: Collection[str] = (),
) -> None:
    """Create a table anew, of doubles in columns `z…` and whole numbers in others; codes: columns `z…` of these."""
    doubles = {one for one in columns if one.startswith("z") and one not in codes}
    kinds = ", ".join(f"{one} {'FLOAT8' if one in doubles else 'BIGINT'}" for one in columns)
    engine.execute(Statement("test", f"DROP TABLE IF EXISTS {table}"))
    engine.execute(Statement("test", f"CREATE TABLE {table} ({kinds})"))
    engine.load(table, list(columns), list(rows))


def load_points(
    engine: Engine,
    rows: Sequence[tuple[Any, ...]],
    coordinates: tuple[Coordinate, ...] = NUMBERS,
    blocks: Sequence[int] | None = None,
) -> Points:
    """Create the table of points anew, numbered as they come; blocks: the block of each, where there are several."""
    table, places = Relation("points"), blocks or [0] * len(rows)
    columns = ["point", "block", *(f"z{one.number}" for one in coordinates)]
    numbered = [(point, block, *row) for point, (block, row) in enumerate(zip(places, rows, strict=True))]
    codes = [f"z{one.number}" for one in coordinates if one.scale is Scale.HIERARCHICAL]
    load_table(engine, table, columns, numbered, codes)
    sizes = Counter(places)
    return Points(table, (), coordinates, len(rows), len(sizes), max(sizes.values()))


def clusters_of(engine: Engine, clustered: Relation) -> dict[int, frozenset[int]]:
    """The points of each cluster."""
    members = defaultdict(set)
    for point, cluster in engine.fetch(Statement("test", f"SELECT point, cluster FROM {clustered}")):
        members[int(cluster)].add(int(point))
    return {cluster: frozenset(points) for cluster, points in members.items()}
