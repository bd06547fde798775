"""Algorithms that search by rows and are judged by persons: each does it, or refuses by name."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.errors import ProtectionError, VerificationError
from sqlanon.models import models_of
from sqlanon.runs import search_source
from sqlanon.support.quantities import quantity
from tests.persons_support import (
    CASES,
    CLOSE,
    COLUMNS,
    DRAWN,
    GROUPED,
    QUASI,
    ROLES,
    ROWS,
    K,
    changing_tables,
    groups,
    refused,
)
from tests.run_support import Database, Row, anonymize

pytestmark = pytest.mark.slow

OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **{
        name: ({"name": name}, GROUPED)
        for name in ("incognito", "samarati", "bottom-up", "optimal", "datafly", "top-down")
    },
    "rothko-t": ({"name": "rothko-t"}, ROLES | {"who": DRAWN | {"nulls": "each"}}),
    "by gain": (
        {"name": "rothko-t", "split": "information-gain", "target": "ill"},
        ROLES | {"who": DRAWN | {"nulls": "each"}},
    ),
    "rothko-s": ({"name": "rothko-s", "sample": 10, "exact_below": 0}, ROLES | {"who": DRAWN | {"nulls": "each"}}),
    "microaggregation": (
        {"name": "microaggregation"},
        ROLES | {"who": DRAWN | {"nulls": "each"}, "town": {"role": "insensitive"}},
    ),
}


@pytest.mark.parametrize("name", sorted(OTHERS))
@settings(max_examples=3, **CASES)
@given(rows=changing_tables(), k=st.integers(2, 4), suppression=st.sampled_from([0, 0.3]))
def test_every_algorithm_makes_classes_of_k_persons(
    database: Database, name: str, rows: list[Row], k: int, suppression: float
) -> None:
    """Whatever searches by rows is judged by the persons behind them, and may suppress its share of the rows."""
    algorithm, roles = OTHERS[name]
    suppresses = name in ("incognito", "samarati", "bottom-up", "optimal", "datafly") and suppression
    more = {"suppression": suppression} if suppresses else {}
    diverse = {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}
    models = [K | {"k": k}, *([diverse] if k == 3 else [])]
    shown = database.release_once(COLUMNS, rows, roles, privacy=models, subject="who", algorithm=algorithm, **more)
    if shown is None:
        return
    classes = [row if name != "microaggregation" else (*row[:2], None, *row[3:]) for row in shown]
    persons, ill = groups(classes)
    assert min(map(len, persons.values())) >= k
    assert k != 3 or all(len(set(values) - {None}) >= 2 for values in ill.values())
    if not suppresses:
        assert Counter(row[3:] for row in shown) == Counter(row[3:] for row in rows)
    assert len(shown) >= (1 - suppression) * len(rows)


@pytest.mark.parametrize("stars", ["star", {"star": "unprotected"}], ids=["judged", "unprotected"])
@settings(max_examples=6, **CASES)
@given(rows=changing_tables(), k=st.integers(2, 4), name=st.sampled_from(["optimal", "bottom-up", "datafly"]))
def test_starred_rows_are_a_class_of_their_persons(
    database: Database, rows: list[Row], k: int, name: str, stars: Any
) -> None:
    """Several rows of one person with stars count once; those who are alone among them are told of."""
    table = database.create(COLUMNS, rows)
    more = {"suppression": 0.4, "suppressed": stars, "algorithm": {"name": name}, "privacy": [K | {"k": k}]}
    try:
        result = anonymize(database.policy(table, GROUPED, subject="who", **more))
        shown = database.sql(f"SELECT * FROM {table}_r")
    except ProtectionError:
        return
    finally:
        database.sql(f"DROP TABLE IF EXISTS {table}_r")
        database.sql(f"DROP TABLE {table}")
    persons, _ = groups(shown)
    sizes = {shows: len(who) for shows, who in persons.items()}
    starred = [row for row in shown if row[1:3] == ("*", "*")] if result.starred else []
    assert len(shown) == len(rows) == result.release.rows
    assert result.release.suppressed == (result.starred.rows if result.starred else 0) == len(starred)
    assert len(starred) <= 0.4 * len(rows)
    assert (result.release.min_class_size, result.risk.prosecutor_max) == (
        min(sizes.values()),
        1 / min(sizes.values()),
    )
    alone = {shows: n for shows, n in sizes.items() if n < k}
    if not starred or stars == "star":
        assert not alone
    elif alone:
        assert list(alone) == [("*", "*")]
        assert result.starred.violate == ("k-anonymity",)
        assert f"suppressed rows of {quantity(alone['*', '*'], 'person')}" in result.starred.note


def test_stars_of_one_person_are_no_class(database: Database) -> None:
    """Five rows of one person in another town: as a class of stars they are one person, however many rows."""
    rows = [(f"p{n % 6}", 20, "a", "flu", n) for n in range(12)] + [("p9", 29, "b", "flu", n) for n in range(5)]
    levels = GROUPED | {"town": QUASI | {"hierarchy": "suppress"}, "age": QUASI | {"hierarchy": {"intervals": [5]}}}
    more: dict[str, Any] = {"algorithm": {"name": "optimal"}, "suppression": 0.3, "privacy": [K | {"k": 2}]}
    table = database.create(COLUMNS, rows)
    told = anonymize(database.policy(table, levels, subject="who", suppressed={"star": "unprotected"}, **more))
    assert (told.starred.rows, told.starred.violate) == (5, ("k-anonymity",))
    assert told.release.min_class_size == 1
    judged = anonymize(database.policy(table, levels, subject="who", suppressed="star", **more), replace=True)
    assert judged.release.min_class_size >= 2
    assert judged.release.suppressed == 0


@pytest.mark.parametrize("algorithm", ["rothko-t", "optimal", "top-down", "microaggregation"])
def test_algorithms_that_count_rows_refuse_shares_of_persons_by_name(database: Database, algorithm: str) -> None:
    message = f"{algorithm} counts rows, by which t-closeness can't be judged of persons"
    refused(database, ROWS, message, algorithm={"name": algorithm}, privacy=[K, CLOSE])


@pytest.mark.parametrize("algorithm", ["condensation", "r-gather"])
def test_algorithms_that_release_no_row_of_anybody_refuse_persons_by_name(database: Database, algorithm: str) -> None:
    refused(database, ROWS, f"subject: {algorithm} releases no row of anybody", algorithm={"name": algorithm})


def test_a_lattice_search_that_counts_rows_is_not_published(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty rows of two persons: by rows each age is a class of ten, and the staged table is judged by persons."""
    rows = [(f"p{n % 2}", 20 + n % 2, "a", "flu", n) for n in range(20)]
    monkeypatch.setattr(search_source, "models_by_rows", models_of)
    table = database.create(COLUMNS, rows)
    with pytest.raises(VerificationError, match="k-anonymity"):
        database.release(table, GROUPED, subject="who", algorithm={"name": "optimal"})
