"""Cells that show groups of their values: what each label holds, and rows that share a value in every column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

STAR = "*"
NULL = "NULL"
Held = Mapping[str, frozenset[Any]]


def text_of(value: Any) -> str:
    return NULL if value is None else str(value)


def held_by(domain: Iterable[Any], levels: Sequence[Callable[[Any], str]]) -> Held:
    """List what each label of a column holds of its domain; NULL is in no group but `*`."""
    held: defaultdict[str, set[Any]] = defaultdict(set)
    for value in {*domain, None}:
        labels = [] if value is None else [level(value) for level in levels]
        for label in (STAR, text_of(value), *labels):
            held[label].add(value)
    return {label: frozenset(values) for label, values in held.items()}


def fits(one: Sequence[str], other: Sequence[str], columns: Sequence[Held]) -> bool:
    """Tell whether the labels of two rows share a value in every column."""
    return all(held[a] & held[b] for a, b, held in zip(one, other, columns, strict=False))


def groups(rows: Sequence[Sequence[str]], columns: Sequence[Held]) -> list[list[int]]:
    """List, for each row, the places of all rows that fit it."""
    return [[place for place, other in enumerate(rows) if fits(row, other, columns)] for row in rows]


def least_fitting(rows: Sequence[Sequence[str]], columns: Sequence[Held]) -> int:
    """Count the rows that fit the row which fewest fit."""
    return min(len(group) for group in groups(rows, columns))
