"""Relaxed partitioning: large leaves are divided among equal rows, against a division in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from sqlanon.errors import PolicyError, ProtectionError
from tests.random_cases import for_random
from tests.rules_support import apply
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.slow

Row = tuple[Any, ...]
COLUMNS = {"a": "INTEGER", "b": "INTEGER", "s": "VARCHAR(1)", "n": "INTEGER"}
ROLES = {"a": "quasi-identifier", "b": "quasi-identifier", "s": "sensitive", "n": "insensitive"}
RELAXED = {"name": "mondrian", "partitioning": "relaxed"}

few_values = st.tuples(
    st.none() | st.integers(0, 3), st.integers(0, 2), st.sampled_from("xyz"), st.none() | st.integers(0, 1)
)
tables = st.tuples(
    st.lists(few_values, min_size=4, max_size=50),
    st.integers(1, 4),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)


def in_order(row: Row) -> tuple[tuple[bool, Any], ...]:
    """The canonical order of rows: by their values, NULL first."""
    return tuple((value is not None, value if value is not None else 0) for value in row)


def shown(values: Sequence[Any]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "NULL"
    span = str(min(known)) if min(known) == max(known) else f"{min(known)}-{max(known)}"
    if len(known) < len(values):
        return f"{{NULL, {span}}}"
    return f"[{span}]" if "-" in span else span


def divided(leaf: list[Row], fewest: int, least: int) -> list[list[Row]]:
    """Parts of equal size in the order of the rows; the leaf itself where one of them is not diverse."""
    count = len(leaf) // fewest
    parts: list[list[Row]] = [[] for _ in range(max(count, 1))]
    for place, row in enumerate(sorted(leaf, key=in_order)):
        parts[place * len(parts) // len(leaf)].append(row)
    return parts if all(len({row[2] for row in part}) >= least for part in parts) else [leaf]


def label_of(part: list[Row]) -> tuple[str, str]:
    return shown([row[0] for row in part]), shown([row[1] for row in part])


@for_random(tables, {"duckdb": 8, "postgres": 4})
def test_large_leaves_are_divided_in_the_order_of_their_rows(database: Database, case: Any) -> None:
    """The classes of the strict partition are the leaves; whatever the physical order is, the parts are the same."""
    rows, k, least, random = case
    models = [{"model": "k-anonymity", "k": k}]
    models += [{"model": "distinct-l-diversity", "attribute": "s", "l": least}] if least > 1 else []
    table = database.create(COLUMNS, rows)
    try:
        anonymize(database.policy(table, ROLES, privacy=models), replace=True)
    except ProtectionError:
        return
    leaves = leaves_of(database, table, rows)
    random.shuffle(rows)
    database.sql(f"DELETE FROM {table}")
    database.insert(table, rows)
    released = database.release(table, ROLES, privacy=models, algorithm=RELAXED)
    fewest = max(k, least)
    parts = [part for leaf in leaves for part in divided(leaf, fewest, least)]
    expected = [(*label_of(part), *row[2:]) for part in parts for row in part]
    assert Counter(released) == Counter(expected)
    if least == 1:
        sizes = Counter(row[:2] for row in released)
        points = {label for label in sizes if not any("-" in one or "{" in one for one in label)}
        assert all(k <= size < 2 * k for label, size in sizes.items() if label not in points)


def leaves_of(database: Database, table: str, rows: list[Row]) -> list[list[Row]]:
    """The rows of each class of the strict release, which shows disjoint regions."""
    regions = {tuple(row[:2]) for row in database.sql(f"SELECT a, b FROM {table}_r")}
    leaves: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        (region,) = [region for region in regions if all(map(holds, region, row[:2]))]
        leaves[region].append(row)
    return list(leaves.values())


def holds(label: str, value: int | None) -> bool:
    if value is None:
        return "NULL" in label
    low, _, high = label.removeprefix("{NULL, ").strip("[]}").partition("-")
    return low != "NULL" and int(low) <= value <= int(high or low)


def test_equal_rows_go_to_several_classes_and_leave_no_rules(database: Database) -> None:
    """The run says how many leaves were divided, and what wants rules is told why there are none."""
    rows = [(1 if n < 20 else n % 3, n // 13, "xyz"[n % 3], n % 2) for n in range(40)]
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, ROLES, privacy=[{"model": "k-anonymity", "k": 4}], algorithm=RELAXED)
    outcome = anonymize(policy, replace=True)
    printed = outcome.as_json()
    assert printed["algorithm"]["partitioning"] == "relaxed"
    assert printed["algorithm"]["divided"] > 0
    assert all(check["violations"] == 0 for check in printed["checks"].values())
    with pytest.raises(PolicyError, match="left no rules for other rows: with partitioning: relaxed a region is no"):
        apply(database, outcome.run, table, f"{table}_again", replace=True)


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"ranges": "cuts"}, "divides rows that no cut tells apart; use ranges: observed, or strict"),
        (
            {"subject": "n", "attributes": ROLES | {"n": {"role": "identifier", "show": "surrogate"}}},
            "divides rows, and the policy counts persons; write subject: none, or use strict",
        ),
    ],
)
def test_what_overlapping_regions_do_not_go_with_is_refused(
    database: Database, more: dict[str, Any], words: str
) -> None:
    table = database.create(COLUMNS, [(n, n, "x", n % 7) for n in range(20)])
    policy = database.policy(table, **{"attributes": ROLES, "algorithm": RELAXED, **more})
    with pytest.raises(PolicyError, match=f"algorithm.partitioning: relaxed {words}"):
        anonymize(policy)


def test_equal_rows_are_paired_with_their_classes_one_by_one(database: Database) -> None:
    """Ten equal rows are in three regions, and each class is held against as many of them as went there."""
    table = database.create({"a": "INTEGER", "n": "INTEGER"}, [(1, 5)] * 3 + [(2, 6)] * 10 + [(3, 7)] * 3)
    roles = {"a": "quasi-identifier", "n": "insensitive"}
    database.release(table, roles, privacy=[{"model": "k-anonymity", "k": 4}], algorithm=RELAXED)
    sizes = database.sql(f"SELECT a, count(*) FROM {table}_r GROUP BY a")
    assert dict(sizes) == {"[1-2]": 4, "2": 8, "[2-3]": 4}
