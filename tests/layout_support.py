"""People and policies for tests of releases in two tables and a view."""

from __future__ import annotations

import random
from typing import Any

from tests.run_support import Database

COLUMNS = {
    "ill": "VARCHAR(20)",
    "age": "INTEGER",
    "weight": "NUMERIC(6,2)",
    "town": "VARCHAR(20)",
    "joined": "DATE",
    "height": "DOUBLE PRECISION",
}


def people(seed: int, rows: int) -> list[tuple[Any, ...]]:
    draw = random.Random(seed)
    return [
        (
            draw.choice(["flu", "cold", None]),
            draw.choice([None, *range(20, 60)]),
            draw.randint(0, 9),
            draw.choice([None, "north", "south", "o'east", 'we"st', "Süd"]),
            f"2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
            draw.choice([-0.0, 0.0, 1.5, 2e300]),
        )
        for _ in range(rows)
    ]


ROWS = people(1, 240)
KEPT = {"ill": "sensitive", "weight": "insensitive", "height": "sensitive"}
QI = "quasi-identifier"
PLAIN: dict[str, Any] = {**KEPT, "age": QI, "town": QI, "joined": QI}
LEVELS: dict[str, Any] = {
    **KEPT,
    "age": {"role": QI, "hierarchy": {"intervals": [10, 20]}},
    "town": {"role": QI, "hierarchy": "suppress"},
    "joined": {"role": QI, "hierarchy": {"date": ["month", "year"]}},
}
SHOWN: dict[str, Any] = {
    **KEPT,
    "age": {"role": QI, "show": "mean"},
    "town": QI,
    "joined": {"role": QI, "show": "bounds"},
    "height": {"role": QI, "show": "midpoint"},
}
STARS = {"algorithm": {"name": "optimal"}, "suppression": 0.2, "suppressed": "star"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mondrian": (PLAIN, {}),
    "rothko-t": (PLAIN, {"algorithm": {"name": "rothko-t"}}),
    "rothko-s": (PLAIN, {"algorithm": {"name": "rothko-s", "sample": 100}}),
    "shown": (SHOWN, {}),
    "cuts": (PLAIN, {"ranges": "cuts"}),
    "datafly": (LEVELS, {"algorithm": {"name": "datafly"}, "suppression": 0.2}),
    "stars": (LEVELS, STARS),
    "recoded": (LEVELS, {"algorithm": {"name": "optimal"}, "suppression": 0.2, "remainder": "recode"}),
}


def as_star(table: str, **more: Any) -> dict[str, Any]:
    return {"release": {"table": f"{table}_s", "layout": "star"}, **more}


def content(database: Database, name: str) -> list[str]:
    return sorted(str(row) for row in database.sql(f"SELECT * FROM {name}"))
