"""Randomized releases by known keys, and a plain-Python draw to hold them against."""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlanon.methods.randomization.result import RandomizedResult
from sqlanon.methods.randomization.source import RandomDraw
from sqlanon.models.randomization.draws import TAIL_BITS, Draws
from sqlanon.policy import Policy
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.runs.sink import Publish
from sqlanon.work.session import open_session
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
    source = RandomDraw(policy, lambda: key)
    with interruptible(), open_session(policy, OPTIONS) as session:
        return carry_out(session, policy, source, Publish(replace), **more)


def line_of(row: Row) -> str:
    """Write a row of whole numbers, decimals and texts as the text that its draws depend on."""
    texts = [
        "-" if value is None else f"{len(value)}:{value}" if isinstance(value, str) else str(value) for value in row
    ]
    return ",".join(texts)


def released_rows(
    rows: Sequence[Row], draws: Sequence[Draws | None], change: Callable[[int, Any, int], Any], key: str = KEY
) -> list[Row]:
    """Change every cell of rows that has a draw, sorted as a release is.

    draws: of each column; None of those that are kept. change: gives the released value of a column's place, value and
    drawn number.
    """
    turns: Counter[Row] = Counter()
    released, words = [], _first_words(draws)
    for row in rows:
        turns[row] += 1
        line, turn = line_of(row), turns[row]
        released.append(
            tuple(
                value if of is None else change(place, value, drawn(of, key, place, words[place], turn, line))
                for place, (value, of) in enumerate(zip(row, draws, strict=True))
            )
        )
    return sorted(released)


def _first_words(draws: Sequence[Draws | None]) -> list[int]:
    """Number the first words of columns: a column that is drawn has one, and another one if a segment is wide."""
    counts = [0 if one is None else 2 if one.is_wide else 1 for one in draws]
    return list(itertools.accumulate(counts, initial=0))[:-1]


def drawn(draws: Draws, key: str, column: int, first: int, turn: int, line: str) -> int:
    """Draw the number of a column of a row by its words, as the database is to do it."""
    word, spread = (digest_of(key, number // 4, turn, line) >> 32 * (number % 4) for number in (first, first + 1))
    tail = digest_of(key, f"t{column}", turn, line) & ((1 << TAIL_BITS) - 1)
    return draws.value(word & 0xFFFFFFFF, tail, spread & 0xFFFFFFFF)


def digest_of(key: str, name: int | str, turn: int, line: str) -> int:
    """Digest a row under a key, as a number whose last bits are drawn first."""
    secret = base64.b64encode(bytes.fromhex(key)).decode().rstrip("=")
    return int.from_bytes(hashlib.md5(f"{secret}:{name}:{turn}:{line}".encode()).digest(), "little")


def cents(value: Decimal) -> int:
    return int(value * 100)
