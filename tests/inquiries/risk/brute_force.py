"""Risks of small tables by their definitions, class by class, in Python."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence

from tests.run_support import Row, open_database

COLUMNS = {"person": "INTEGER", "age": "INTEGER", "zip": "VARCHAR(5)", "sex": "VARCHAR(1)"}
QUASI_IDENTIFIERS = ["age", "zip", "sex"]


def people(seed: int, rows: int = 150, persons: int = 60) -> list[Row]:
    """Rows of some persons, with NULLs, and with texts that look like others."""
    source = random.Random(seed)
    zips = ["10115", "10117", " 1011", "", None]
    return [
        (source.randrange(persons), source.choice([None, *range(6)]), source.choice(zips), source.choice("fm"))
        for _ in range(rows)
    ]


def create(url: str, rows: Sequence[Row]) -> str:
    """A new table of these rows in a database that nobody has open then."""
    with open_database(url) as database:
        return database.create(COLUMNS, rows)


def class_sizes(rows: Sequence[Row], *, by_person: bool = False) -> Mapping[Hashable, int]:
    """The members of each class: rows, or persons by the first column; the others are quasi-identifiers."""
    members: dict[Hashable, set[Hashable]] = defaultdict(set)
    for number, (person, *key) in enumerate(rows):
        members[tuple(key)].add(person if by_person else number)
    return {key: len(of_class) for key, of_class in members.items()}


def histogram(sizes: Mapping[Hashable, int]) -> dict[int, int]:
    return dict(Counter(sizes.values()))
