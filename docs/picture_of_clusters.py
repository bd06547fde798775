"""One picture of clusters and one of regions, of the same table: what each makes of two numbers that hang together."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from sqlanon import run
from sqlanon.policy.loading import build_policy
from sqlanon.report.drawing.svg import BLUE, FAINT, INK, PALE_BLUE, RUST, document, element, line, text

ROWS, K = 200, 10
SIDE, MARGIN = 420.0, 20.0  # of a picture
LEAST, MOST = -3.2, 3.2  # of both numbers

Point = tuple[float, float]


def draw_clusters_and_regions(place: Path, directory: Path) -> None:
    """Write `clusters.svg` and `regions.svg` into a directory; databases are made in the other one."""
    database = directory / "points.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE points (number INTEGER, x DOUBLE, y DOUBLE)")
        connection.executemany("INSERT INTO points VALUES (?, ?, ?)", _points())
    clusters = _release(database, "microaggregation", {}, "p.x, p.y, r.x, r.y")
    regions = _release(database, "mondrian", {"show": "bounds"}, "p.x, p.y, r.x_min, r.y_min, r.x_max, r.y_max")
    _write(
        place / "clusters.svg",
        f"Clusters of at least {K} rows",
        f"{ROWS} rows with two numbers that rise together. A line leads from each row to the mean of its cluster.",
        _cluster_parts(clusters),
    )
    _write(
        place / "regions.svg",
        f"Regions of at least {K} rows",
        f"The same {ROWS} rows. Each box is the range of both numbers that a row in it shows.",
        _region_parts(regions),
    )


def _points() -> list[tuple[int, float, float]]:
    """Rows along a slope, as income and expenses would lie."""
    draw = random.Random(1)
    rows = []
    for number in range(ROWS):
        slope = draw.gauss(0, 1.1)
        x, y = (min(max(slope + draw.gauss(0, 0.3), LEAST), MOST) for _ in range(2))
        rows.append((number, x, y))
    return rows


def _release(database: Path, algorithm: str, more: dict[str, Any], columns: str) -> list[tuple[float, ...]]:
    """Release the points by an algorithm; each row's numbers beside those that are shown for it."""
    quasi_identifier = {"role": "quasi-identifier", **more}
    policy = {
        "source": {"url": f"duckdb:///{database}", "table": "points"},
        "release": {"table": "shown"},
        "attributes": {"number": {"role": "insensitive"}, "x": quasi_identifier, "y": quasi_identifier},
        "privacy": [{"model": "k-anonymity", "k": K}],
        "algorithm": {"name": algorithm},
    }
    run(build_policy(policy), replace=True)
    with duckdb.connect(str(database)) as connection:
        return connection.execute(
            f"SELECT {columns} FROM points AS p JOIN shown AS r ON r.number = p.number ORDER BY p.number"
        ).fetchall()


def _cluster_parts(rows: list[tuple[float, ...]]) -> Iterator[str]:
    for x, y, mean_x, mean_y in rows:
        yield line(*_place(x, y), *_place(mean_x, mean_y), stroke=FAINT, stroke_width=1)
    yield from _dots(rows)
    for x, y in sorted({(row[2], row[3]) for row in rows}):
        at = _place(x, y)
        yield element("circle", cx=at[0], cy=at[1], r=5, fill=RUST)


def _region_parts(rows: list[tuple[float, ...]]) -> Iterator[str]:
    for left, low, right, high in sorted({row[2:6] for row in rows}):
        (x1, y1), (x2, y2) = _place(left, high), _place(right, low)
        yield element("rect", x=x1, y=y1, width=x2 - x1, height=y2 - y1, fill=PALE_BLUE, stroke=BLUE)
    yield from _dots(rows)


def _dots(rows: list[tuple[float, ...]]) -> Iterator[str]:
    for row in rows:
        at = _place(row[0], row[1])
        yield element("circle", cx=at[0], cy=at[1], r=2, fill=INK)


def _place(x: float, y: float) -> Point:
    """The place of two numbers in a picture, to a tenth of a pixel."""
    scale = (SIDE - 2 * MARGIN) / (MOST - LEAST)
    return round(MARGIN + (x - LEAST) * scale, 1), round(SIDE - MARGIN - (y - LEAST) * scale, 1)


def _write(path: Path, title: str, description: str, parts: Iterator[str]) -> None:
    head = text(MARGIN, MARGIN, title, font_size=15, font_weight=600)
    path.write_text(document(SIDE, SIDE, title, description, [*parts, head]), encoding="utf-8")
