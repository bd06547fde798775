"""Staging of rows by procedures of jobs: by rule, or with the cells that are shown; nothing else differs."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.jobs.running import run_procedure
from sqlanon.staging.labels import EVERYTHING
from tests.jobs_support import (
    K,
    assert_order_is_of_what_rows_show,
    carry_out,
    frozen,
    order_of_release,
    released,
    replaced,
    simple,
    table,
)
from tests.rules_support import apply
from tests.run_support import OPTIONS, Row, anonymize, open_database

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("wide", [0, 3])
def test_the_order_of_rows_tells_nothing_of_the_sources(postgres_url: str, wide: int) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run, on_violation="suppress", budget=0.9)
        assert_order_is_of_what_rows_show(database, name, table(5, 250, wide))


def test_the_order_of_equal_numbers_tells_nothing_of_the_sources(postgres_url: str) -> None:
    """1.0 and 1.00 are equal, and so are both zeros, but they are released as they are."""
    numbers = [(i % 4, Decimal(a), b) for i in range(32) for a in ("1.0", "1.00") for b in (0.0, -0.0)]
    with open_database(postgres_url) as database:
        name = database.create({"n": "INTEGER", "a": "NUMERIC", "b": "FLOAT8"}, numbers)
        roles = {"n": "quasi-identifier", "a": "insensitive", "b": "insensitive"}
        frozen(database, anonymize(database.policy(name, roles)).run)
        assert_order_is_of_what_rows_show(database, name, list(numbers))


def test_the_order_of_rows_tells_nothing_of_what_they_do_not_show(postgres_url: str) -> None:
    """Neither of a NULL that no rule knows, where the rule shows a star too, nor of rows that are suppressed."""
    rows: list[Row] = [(i // 3, int(i in (2, 5)), i) for i in range(30)]
    alone = [row for row in rows[6:] if row[-1] % 3]
    with open_database(postgres_url) as database:
        name = database.create(dict.fromkeys("nmx", "INTEGER"), rows)
        roles = {"n": "quasi-identifier", "m": "quasi-identifier", "x": "insensitive"}
        run = anonymize(database.policy(name, roles, privacy=[K])).run
        frozen(database, run, on_violation="suppress", budget=0.9)
        known = order_of_release(database, name, rows)
        assert {row[1] for row in known} == {EVERYTHING}
        assert order_of_release(database, name, [(0, None, 0), *rows[1:]]) == known
        assert order_of_release(database, name, [*rows, (None, 0, 30)]) == known
        few = [row for row in known if row[-1] < 6]
        assert order_of_release(database, name, rows[:6]) == few  # fewer rows than rules
        assert order_of_release(database, name, [*rows[:6], *alone]) == few


def test_rules_that_show_the_same_are_told_by_what_they_show(postgres_url: str) -> None:
    """Means of integers beyond 2^53 are the same double: by their rules the rows of one class would be two."""
    high = 2**60
    with open_database(postgres_url) as database:
        name = database.create({"n": "BIGINT", "x": "INTEGER"}, [(high + i // 5, i) for i in range(10)])
        roles: dict[str, Any] = {"n": {"role": "quasi-identifier", "show": "mean"}, "x": "insensitive"}
        run = anonymize(database.policy(name, roles, privacy=[K])).run
        job = frozen(database, run)
        assert (job.assigning, job.showing) == (None, None)
        assert carry_out(database)["release"]["classes"] == 1


def test_a_mean_of_zero_is_not_that_of_nothing(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        name = database.create({"n": "FLOAT8", "m": "INTEGER"}, [(n, 1) for n in (None, 0.0) for _ in range(3)])
        roles: dict[str, Any] = {"n": {"role": "quasi-identifier", "show": "mean"}, "m": "quasi-identifier"}
        frozen(database, anonymize(database.policy(name, roles, privacy=[K])).run)
        database.insert(name, [(0.0, None)])  # so that rows are staged with what they show
        assert carry_out(database)["release"]["classes"] == 2
        assert len(database.sql(f"SELECT * FROM {name}_r WHERE n = 0")) == 4


def test_rows_of_a_tree_are_staged_by_their_rules(postgres_url: str) -> None:
    """Those with values unknown to the rules too."""
    with open_database(postgres_url) as database:
        name, run = simple(database)
        job = frozen(database, run, on_violation="suppress", budget=0.9)
        assert job.assigning is not None
        assert job.showing is not None
        database.sql("UPDATE sqlanon.jobs SET recoding = NULL")  # the statement of what all rows show
        carry_out(database)
        replaced(database, name, table(2, 200, 3))
        assert carry_out(database)["source"]["rows"] == 200


def test_names_of_columns_may_be_those_that_staging_uses(postgres_url: str) -> None:
    names = ("class", "mask", "rule", "sqlanon_class", "sqlanon_mask", "sqlanon_times", "sqlanon_address")
    rows: list[Row] = [(*((i // 4,) * len(names)), i) for i in range(40)]
    with open_database(postgres_url) as database:
        name = database.create(dict.fromkeys([*names, "x"], "INTEGER"), rows)
        roles = {**dict.fromkeys(names, "quasi-identifier"), "x": "insensitive"}
        run = anonymize(database.policy(name, roles, privacy=[K])).run
        frozen(database, run, on_violation="suppress", budget=0.9)
        replaced(database, name, [*rows, *((None, *row[1:]) for row in rows)])
        apply(database, run, name, f"{name}_again")
        carry_out(database)
        assert released(database, f"{name}_r") == released(database, f"{name}_again")


def test_a_session_may_carry_out_a_job_again(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run, on_violation="suppress", budget=0.9)
        with connect(database.url, OPTIONS) as engine, Catalog.open(engine) as catalog:
            job = catalog.job("nightly")
            first = run_procedure(engine, catalog, job)
            replaced(database, name, table(2, 200, 3))
            second = run_procedure(engine, catalog, job)
            replaced(database, name, table(1, 120, 0))
            third = run_procedure(engine, catalog, job)
        assert [one.source.rows for one in (first, second, third)] == [120, 200, 120]
        assert third.release.classes == first.release.classes
        assert database.leftovers() == []
