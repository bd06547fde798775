"""Sweeps, lattices and explorations that count persons, against real runs and brute force."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.errors import PolicyError
from sqlanon.methods.generalization.explore.explore_lattice import explore
from sqlanon.methods.generalization.explore.explore_tradeoff import explore_tradeoff
from sqlanon.methods.generalization.explore.page import render_explore
from sqlanon.runs.tradeoffs.sweeping import sweep
from tests.persons_support import CASES, CLOSE, COLUMNS, DRAWN, GROUPED, ROLES, ROWS, K, changing_tables
from tests.run_support import OPTIONS, Database, Row, anonymize, duckdb_url, open_database

pytestmark = pytest.mark.slow

HIDDEN = {"role": "identifier", "nulls": "each"}
EACH = DRAWN | {"nulls": "each"}
FEW = settings(max_examples=4, **CASES)


@pytest.mark.parametrize("name", ["mondrian", "optimal", "top-down"])
@FEW
@given(rows=changing_tables(), shown=st.sampled_from([EACH, HIDDEN]), stars=st.booleans())
def test_a_sweep_measures_what_a_run_with_each_k_comes_to(
    database: Database, name: str, rows: list[Row], shown: Any, stars: bool
) -> None:
    """Nobody sees a sweep's rows, so that it makes no pseudonyms: figures are those of real releases all the same."""
    table = database.create(COLUMNS, rows)
    roles = (ROLES if name == "mondrian" else GROUPED) | {"who": shown}
    more: dict[str, Any] = {"algorithm": {"name": name}}
    if name == "optimal":
        more |= {"suppression": 0.3, "suppressed": {"star": "unprotected"} if stars else "omit"}
    policy = database.policy(table, roles, subject="who", **more)
    for one in sweep(policy, [2, 3], options=OPTIONS).runs:
        if one.result is None:
            continue
        real = anonymize(database.policy(table, roles, subject="who", privacy=[K | {"k": one.k}], **more), replace=True)
        assert one.result.release.class_sizes == real.release.class_sizes
        assert (one.result.risk, one.result.metrics) == (real.risk, real.metrics)
        assert one.result.release.rows == real.release.rows
        told, known = one.result.subject, real.subject
        assert (told.unit, told.persons) == ("persons", known.persons)
        assert told.in_several_classes == known.in_several_classes
        assert one.result.source.figures == real.source.figures
    database.sql(f"DROP TABLE IF EXISTS {table}_r")
    database.sql(f"DROP TABLE {table}")
    assert database.leftovers() == []


def labels(row: Row, levels: tuple[int, ...]) -> Row:
    """Show a row at some levels: ages in fives or tens, or nothing; the town, or nothing."""
    age, town = levels
    width = (1, 5, 10)[age] if age < 3 else None
    return (None if width is None else row[1] // width, row[2] if town == 0 else None)


def classes_at(rows: list[Row], levels: tuple[int, ...]) -> dict[Row, list[tuple[Any, int]]]:
    """The rows of each class, as the person and the place of each."""
    classes: dict[Row, list[tuple[Any, int]]] = defaultdict(list)
    for place, row in enumerate(rows):
        classes[labels(row, levels)].append((("row", place) if row[0] is None else row[0], place))
    return classes


@FEW
@given(rows=changing_tables(), k=st.integers(1, 4), diverse=st.booleans(), shown=st.sampled_from([EACH, HIDDEN]))
def test_lattices_are_explored_by_persons(
    database: Database, rows: list[Row], k: int, diverse: bool, shown: Any
) -> None:
    """Each generalization's classes, with their persons, those that are suppressed, and the risk of the others."""
    table = database.create(COLUMNS, rows)
    models = [{"model": "distinct-l-diversity", "attribute": "ill", "l": 1}] if diverse else [K | {"k": k}]
    more: dict[str, Any] = {"suppression": 0.3, "algorithm": {"name": "optimal"}, "privacy": models}
    policy = database.policy(table, GROUPED | {"who": shown}, subject="who", **more)
    tradeoff = explore_tradeoff(policy, options=OPTIONS)
    database.sql(f"DROP TABLE {table}")
    assert tradeoff.unit == tradeoff.as_json()["unit"] == "persons"
    budget, satisfying = tradeoff.budget, set()
    for one in tradeoff.candidates:
        sizes, suppressed = [], 0
        for members in classes_at(rows, one.levels).values():
            persons = len({who for who, _ in members})
            ill = {rows[place][3] for _, place in members} - {None}
            if (not ill) if diverse else persons < k:
                suppressed += len(members)
            else:
                sizes.append(persons)
        assert (one.suppressed, one.rows) == (suppressed, len(rows) - suppressed)
        assert (one.classes, one.least) == (len(sizes), min(sizes, default=0))
        assert one.greatest == (1 / min(sizes) if sizes else 0)
        assert one.mean == pytest.approx(len(sizes) / sum(sizes) if sizes else 0)
        assert sum(part.kept for part in one.sizes) == len(sizes)
        assert all(sum(part.lower <= n <= part.upper for n in sizes) == part.kept for part in one.sizes)
        assert one.satisfies == (suppressed <= budget)
        satisfying |= {one.levels} if one.satisfies else set()
    whole = [len({who for who, _ in members}) for members in classes_at(rows, (0, 0)).values()]
    assert (tradeoff.before.least, tradeoff.before.classes) == (min(whole), len(whole))
    assert tradeoff.before.mean == pytest.approx(len(whole) / sum(whole))


@FEW
@given(rows=changing_tables(), k=st.integers(2, 4))
def test_a_lattice_holds_generalizations_with_classes_of_k_persons(database: Database, rows: list[Row], k: int) -> None:
    table = database.create(COLUMNS, rows)
    more: dict[str, Any] = {"algorithm": {"name": "optimal"}, "privacy": [K | {"k": k}]}
    policy = database.policy(table, GROUPED | {"who": HIDDEN}, subject="who", **more)
    expected = [
        (age, town)
        for age in range(4)
        for town in range(2)
        if all(len({who for who, _ in one}) >= k for one in classes_at(rows, (age, town)).values())
    ]
    if expected:
        assert sorted(explore(policy, everything=True, options=OPTIONS).anonymous) == expected
    database.sql(f"DROP TABLE {table}")


@pytest.mark.either_engine
def test_pages_name_persons_and_what_goes_by_shares_is_refused(tmp_path: Path) -> None:
    with open_database(duckdb_url(tmp_path / "t.duckdb")) as database:
        database.create(COLUMNS, ROWS, "t")
        swept = database.policy("t", ROLES, subject="who")
        leveled = database.policy("t", GROUPED, subject="who", algorithm={"name": "optimal"})
        starred = database.policy("t", GROUPED, subject="who", suppressed="star", suppression=0.2)
        by_shares = database.policy("t", GROUPED, subject="who", privacy=[K, CLOSE])
    for tradeoff in (explore_tradeoff(swept, ks=[2], options=OPTIONS), explore_tradeoff(leveled, options=OPTIONS)):
        page = render_explore(tradeoff)
        assert '<option value="greatest">greatest of a person</option>' in page
        assert '"unit":"persons"' in page
    with pytest.raises(PolicyError, match="subject: the exploration of a lattice counts rows with stars"):
        explore_tradeoff(starred, options=OPTIONS)
    for look in (explore_tradeoff, explore):
        with pytest.raises(PolicyError, match="the exploration of a lattice counts rows, by which t-closeness"):
            look(by_shares, options=OPTIONS)
