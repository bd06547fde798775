"""Randomized releases by known keys, and a plain-Python draw to hold them against."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlanon.models.randomization.draws import BOUND_BITS, SPREAD_BITS, Draws
from sqlanon.policy import Policy
from sqlanon.results.randomized import RandomizedResult
from sqlanon.runs.randomizing import run_randomized
from tests.run_support import OPTIONS, Database

KEY = "00112233445566778899aabbccddeeff"
MODEL = [{"model": "randomization"}]
Row = tuple[Any, ...]


def randomized_policy(
    database: Database, table: str, roles: Mapping[str, str], columns: Mapping[str, Any], **more: Any
) -> Policy:
    """A policy that randomizes columns of a table."""
    return database.policy(
        table, roles, **{"privacy": MODEL, "algorithm": {"name": "randomize", "columns": dict(columns)}} | more
    )


def randomize(policy: Policy, *, replace: bool = False, key: str = KEY, **more: Any) -> RandomizedResult:
    """A run whose key is known."""
    return run_randomized(policy, replace=replace, options=OPTIONS, key=lambda: key, **more)


def line_of(row: Row) -> str:
    """Write a row of whole numbers, decimals and texts as the text that its draws depend on."""
    texts = [
        "-" if value is None else f"{len(value)}:{value}" if isinstance(value, str) else str(value) for value in row
    ]
    return ",".join(texts)


def drawn(draws: Draws, key: str, column: int, turn: int, line: str) -> int:
    """Draw the number of a column of a row, as the database is to do it."""
    digest = int.from_bytes(hashlib.md5(f"{key}:{column}:{turn}:{line}".encode()).digest(), "little")
    slot = digest & ((1 << draws.slot_bits) - 1)
    bound = digest >> 16 & ((1 << BOUND_BITS) - 1)
    return draws.value(slot, bound, digest >> 64 & ((1 << SPREAD_BITS) - 1))


def released_rows(
    rows: Sequence[Row], change: Callable[[int, Any, Callable[[Draws], int]], Any], key: str = KEY
) -> list[Row]:
    """Change every cell of rows that has a draw, sorted as a release is.

    change: gives the released value of a column's place, value and draw.
    """
    turns: Counter[Row] = Counter()
    released = []
    for row in rows:
        turns[row] += 1
        line, turn = line_of(row), turns[row]
        draws = [functools.partial(_draw, key, place, turn, line) for place in range(len(row))]
        released.append(tuple(change(place, value, draws[place]) for place, value in enumerate(row)))
    return sorted(released)


def _draw(key: str, column: int, turn: int, line: str, draws: Draws) -> int:
    return drawn(draws, key, column, turn, line)


def cents(value: Decimal) -> int:
    return int(value * 100)
