"""Numbers of classes that hold NULL: an unknown value must not become somebody else's."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.policy import AttributeSection
from sqlanon.releases.rules.export_sql import rules_select
from sqlanon.releases.rules.store_rules import read_rules
from sqlanon.staging.cells import Shown
from tests.jobs_support import carry_out, frozen
from tests.random_cases import many
from tests.rules_support import apply
from tests.run_support import Database, anonymize, open_database

pytestmark = pytest.mark.slow

VALUES: list[int | None] = [1, None, 2, 3, 4, 5, 6, 7]
HIDDEN = {"bounds": (None, None), "mean": (None,), "midpoint": (None,)}
TYPES = ["INTEGER", "DECIMAL(9, 2)", "DOUBLE PRECISION", "REAL"]


def _role(show: str, **more: Any) -> dict[str, Any]:
    return {"role": "quasi-identifier", "show": show, **more}


@pytest.mark.either_engine
@pytest.mark.parametrize("show", HIDDEN)
@pytest.mark.parametrize("type_", TYPES)
def test_a_class_that_holds_null_shows_no_number(database: Database, type_: str, show: str) -> None:
    table = database.create({"q": type_, "id": "INTEGER"}, [(n, i) for i, n in enumerate(VALUES)])
    released = {row[-1]: row[:-1] for row in database.release(table, {"q": _role(show), "id": "insensitive"})}
    assert released[1] == HIDDEN[show]
    hidden = {id_ for id_, cells in released.items() if cells == HIDDEN[show]}
    assert len(hidden) >= 2
    assert len(hidden) < 8
    assert all(None not in cells for id_, cells in released.items() if id_ not in hidden)


@pytest.mark.either_engine
@pytest.mark.parametrize("show", HIDDEN)
def test_a_policy_may_give_it_the_numbers_of_the_others(database: Database, show: str) -> None:
    table = database.create({"q": "INTEGER", "id": "INTEGER"}, [(n, i) for i, n in enumerate(VALUES)])
    released = database.release(table, {"q": _role(show, nulls="allow"), "id": "insensitive"})
    assert all(None not in row for row in released)


def test_ranges_of_postgres(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        table = database.create({"q": "INTEGER", "id": "INTEGER"}, [(n, i) for i, n in enumerate(VALUES)])
        for more in ({}, {"hierarchy": {"intervals": [2]}}):
            database.release(table, {"q": _role("range", **more), "id": "insensitive"})
            assert database.sql(f"SELECT q FROM {table}_r WHERE id = 1") == [(None,)]


@pytest.mark.either_engine
@pytest.mark.parametrize("type_", ["DATE", "TIMESTAMP"])
def test_dates(database: Database, type_: str) -> None:
    days = ["2024-01-01", None, "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-07"]
    table = database.create({"q": type_, "id": "INTEGER"}, [(day, i) for i, day in enumerate(days)])
    run = anonymize(database.policy(table, {"q": _role("bounds"), "id": "insensitive"}))
    released = database.sql(f"SELECT * FROM {table}_r")
    assert [row[:-1] for row in released if row[-1] == 1] == [(None, None)]
    assert run.metrics.gcp is not None
    assert run.metrics.gcp > sum(row[0] is None for row in released) / 6 - 1e-9


@pytest.mark.either_engine
@pytest.mark.parametrize("search", ["optimal", "top-down"])
@pytest.mark.parametrize("show", ["bounds", "mean", "midpoint"])
def test_lattices(database: Database, search: str, show: str) -> None:
    values = [1, 2, 11, 12, 13, None]
    table = database.create({"q": "INTEGER", "id": "INTEGER"}, [(n, i) for i, n in enumerate(values)])
    role = _role(show, hierarchy={"intervals": [10]})
    released = database.release(table, {"q": role, "id": "insensitive"}, algorithm={"name": search})
    assert {cell for row in released if row[-1] == 5 for cell in row[:-1]} == {None}


@pytest.mark.either_engine
def test_labels_have_no_need_of_it(database: Database) -> None:
    with pytest.raises(PolicyError, match="labels say themselves whether a class holds NULL"):
        database.policy("t", {"q": _role("label", nulls="unknown")})


# --- verification


@pytest.mark.parametrize("show", HIDDEN)
def test_a_number_for_an_unknown_value_is_refused(
    database: Database, show: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.create({"q": "INTEGER", "id": "INTEGER"}, [(n, i) for i, n in enumerate(VALUES)])
    monkeypatch.setattr(Shown, "_hides_nulls", property(lambda _: False))
    with pytest.raises(VerificationError):
        anonymize(database.policy(table, {"q": _role(show), "id": "insensitive"}))


@pytest.mark.either_engine
@pytest.mark.parametrize("show", HIDDEN)
def test_hiding_known_classes_is_refused(database: Database, show: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = database.create({"q": "INTEGER", "id": "INTEGER"}, [(n, i) for i, n in enumerate(VALUES)])
    monkeypatch.setattr(Shown, "_number_cell" if show != "bounds" else "_bounds", _nothing(show))
    with pytest.raises(VerificationError):
        anonymize(database.policy(table, {"q": _role(show), "id": "insensitive"}))


def _nothing(show: str) -> Any:
    """Make a replacement for `Shown._number_cell`, or `Shown._bounds`, whose cells are NULLs."""
    from markupsafe import Markup

    from sqlanon.sql import Identifier
    from sqlanon.staging.cells import Cell

    nothing = Markup("CAST(NULL AS FLOAT8)")
    if show == "bounds":
        return property(lambda _: (Markup("CAST(NULL AS INTEGER)"),) * 2)
    return lambda self, _value: Cell(Identifier(self.name), nothing, (nothing,))


# --- later releases


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[str], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Draw the shows of two numbers, rows of both, and new rows, with NULLs where the first had none."""
    shows = draw(st.lists(st.sampled_from(["bounds", "mean", "midpoint", "label"]), min_size=2, max_size=2))
    cell, other = st.sampled_from([None, *range(6)]), st.sampled_from([None, *range(-1, 8)])
    known = st.sampled_from(range(6)) if draw(st.booleans()) else cell
    rows = draw(st.lists(st.tuples(known, cell), min_size=3, max_size=20))
    return shows, rows, draw(st.lists(st.tuples(other, other), min_size=1, max_size=10))


@pytest.mark.parametrize("ranges", ["observed", "cuts"])
@settings(
    max_examples=many(3),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=cases(), postgres=st.booleans())
def test_no_release_gives_an_unknown_value_a_number(
    databases: tuple[Database, Database],
    case: tuple[list[str], list[tuple[Any, ...]], list[tuple[Any, ...]]],
    postgres: bool,
    ranges: str,
) -> None:
    shows, rows, new = case
    columns = {"a": "INTEGER", "b": "INTEGER", "id": "INTEGER"}
    roles: dict[str, Any] = {"a": _role(shows[0]), "b": _role(shows[1]), "id": "insensitive"}
    database = databases[postgres]
    table = database.create(columns, [(*row, n) for n, row in enumerate(rows)])
    run = anonymize(database.policy(table, roles, ranges=ranges))
    first = database.sql(f"SELECT * FROM {table}_r")
    _require_unknown(first, rows, shows)
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        select = rules_select(catalog.store, read_rules(catalog, run.run), catalog.run(run.run))
    if ranges == "cuts":
        apply(database, run.run, table, f"{table}_again", "error")
        assert database.sql(f"SELECT * FROM {table}_again") == first
        assert sorted(database.sql(select), key=repr) == sorted(first, key=repr)
    database.sql(f"DELETE FROM {table}")
    both = [*rows, *new, *new]
    database.insert(table, [(*row, n) for n, row in enumerate(both)])
    outcome = apply(database, run.run, table, f"{table}_later", "suppress")
    _require_unknown(database.sql(f"SELECT * FROM {table}_later"), both, shows)
    selected = database.sql(select)
    _require_unknown(selected, both, shows)
    if not outcome.release.suppressed:
        assert sorted(database.sql(f"SELECT * FROM {table}_later"), key=repr) == sorted(selected, key=repr)


def _require_unknown(released: list[tuple[Any, ...]], rows: list[tuple[Any, ...]], shows: list[str]) -> None:
    """No number for an unknown value."""
    for row in released:
        at = 0
        for show, raw in zip(shows, rows[row[-1]], strict=True):
            width = 2 if show == "bounds" else 1
            cells, at = row[at : at + width], at + width
            if raw is None:
                assert set(cells) <= ({None} if show != "label" else set(cells))
                assert show != "label" or "NULL" in cells[0] or cells[0] == "*"


@pytest.mark.either_engine
def test_a_job_hides_what_its_run_hides(database: Database) -> None:
    draw = random.Random(7)
    rows = [(draw.choice([None, *range(30)]), draw.choice([None, *range(9)]), n) for n in range(200)]
    table = database.create({"a": "INTEGER", "b": "INTEGER", "id": "INTEGER"}, rows)
    roles = {"a": _role("bounds"), "b": _role("midpoint"), "id": "insensitive"}
    run = anonymize(database.policy(table, roles, ranges="cuts", suppression=0.5)).run
    frozen(database, run)
    carry_out(database)
    released = database.sql(f"SELECT * FROM {table}_r")
    _require_unknown(released, [row[:2] for row in rows], ["bounds", "midpoint"])
    database.sql(f"UPDATE {table} SET a = NULL WHERE id % 9 = 0")
    carry_out(database)
    found = database.sql(f"SELECT * FROM {table}_r")
    raw = {row[0]: row[1:] for row in database.sql(f"SELECT id, a, b FROM {table}")}
    _require_unknown(found, [raw[n] for n in range(200)], ["bounds", "midpoint"])
    assert AttributeSection(role="quasi-identifier", show="bounds").hides_nulls
