"""km-anonymity of persons: whoever knows any m of their rows has k persons, as brute force over all sets says."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlanon import policy_risk
from sqlanon.results.measures import SingledOut
from sqlanon.verification.release import verify_release
from tests.persons_support import COLUMNS, DRAWN, GROUPED, ORACLE, K, changing_tables
from tests.run_support import Database, Row, anonymize, open_database

pytestmark = pytest.mark.in_turns(4)

KM: dict[str, Any] = {"model": "km-anonymity", "k": 3, "m": 2}
LATTICE = ("optimal", "incognito", "datafly", "samarati", "bottom-up")
KNOWN_OR_NOT = GROUPED | {"who": DRAWN | {"nulls": "each"}}
ALGORITHMS = ("mondrian", *LATTICE)


def classes_by_person(rows: list[Row]) -> dict[Any, set[Row]]:
    """The classes of each person; NULL is another person in each row."""
    classes: dict[Any, set[Row]] = defaultdict(set)
    for place, (who, age, town, *_) in enumerate(rows):
        classes[("row", place) if who is None else who].add((age, town))
    return classes


def supports(rows: list[Row], m: int) -> Counter[frozenset[Row]]:
    """Count the persons who have each set of up to `m` classes that somebody has."""
    return Counter(
        frozenset(chosen)
        for classes in classes_by_person(rows).values()
        for size in range(1, m + 1)
        for chosen in itertools.combinations(sorted(classes, key=str), size)
    )


def is_km_anonymous(rows: list[Row], k: int, m: int) -> bool:
    return min(supports(rows, m).values(), default=k) >= k


def singled(rows: list[Row]) -> SingledOut:
    """Persons that are alone with one, two and three classes at most, and with all of theirs."""
    classes = classes_by_person(rows)
    whole = Counter(frozenset(one) for one in classes.values())

    def alone(m: int) -> int:
        had = supports(rows, m)
        return sum(
            any(had[frozenset(c)] == 1 for n in range(1, m + 1) for c in itertools.combinations(one, n))
            for one in classes.values()
        )

    return SingledOut(
        len(classes), alone(1), alone(2), alone(3), sum(whole[frozenset(one)] == 1 for one in classes.values())
    )


@pytest.mark.parametrize("name", ALGORITHMS)
@ORACLE
@given(rows=changing_tables(), k=st.integers(1, 4), m=st.integers(1, 4), suppression=st.sampled_from([0, 0.4]))
def test_sets_of_classes_are_those_of_k_persons(
    database: Database, name: str, rows: list[Row], k: int, m: int, suppression: float
) -> None:
    suppression = 0 if name == "mondrian" else suppression
    given = {"privacy": [KM | {"k": k, "m": m}], "algorithm": {"name": name}, "suppression": suppression}
    shown = database.release_once(COLUMNS, rows, KNOWN_OR_NOT, subject="who", **given)
    if shown is None:
        assert len(classes_by_person(rows)) < k
        return
    assert is_km_anonymous(shown, k, m)
    assert len(shown) >= len(rows) - int(suppression * len(rows))


@ORACLE
@given(rows=changing_tables(), k=st.integers(1, 3))
def test_persons_who_are_alone_with_some_of_their_rows_are_counted(database_url: str, rows: list[Row], k: int) -> None:
    rows = [*rows, *((f"p{n}", 20, "a", "flu", 1) for n in range(3))]
    with open_database(database_url) as database:
        table = database.create(COLUMNS, rows)
        policy = database.policy(
            table, KNOWN_OR_NOT, privacy=[K | {"k": k}], subject="who", algorithm={"name": "datafly"}
        )
        told = anonymize(policy).subject
        shown = database.sql(f"SELECT * FROM {table}_r")
    verified, both = verify_release(policy), policy_risk(policy)
    assert both.release is not None
    assert verified.persons is not None
    assert told is not None
    assert told.singled_out == verified.persons.singled == both.release.singled_out == singled(shown)
    assert both.source.singled_out == singled(rows)
