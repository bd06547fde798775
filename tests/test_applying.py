"""Application of rules: refused rows and values, tables left behind, and rules from file to file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from sqlanon.policy.writer import policy_text
from sqlanon.releases.rules import route_rows
from sqlanon.releases.rules.store_rules import read_rules
from sqlanon.runs.applying import apply_rules
from sqlanon.runs.stored import Application
from sqlanon.work.session import local_catalog
from tests.jobs_support import COLUMNS, ROLES, K, released, replaced, table
from tests.rules_support import CODED, CODED_ROLES, apply, coded
from tests.run_support import OPTIONS, Database, Row, anonymize, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


def _simple(database: Database) -> tuple[str, str]:
    """A run, and its source."""
    table = database.create(CODED, coded(1, 60, 10))
    return anonymize(database.policy(table, CODED_ROLES, privacy=[{"model": "k-anonymity", "k": 3}])).run, table


def test_a_violation_publishes_nothing(database: Database) -> None:
    run, table = _simple(database)
    few = database.create(CODED, [("x", "100", "a"), ("y", "200", "b"), ("v", "990", "c")])
    before = database.sql(f"SELECT * FROM {table}_r")
    with pytest.raises(ProtectionError, match="--on-violation suppress"):
        apply(database, run, few, f"{table}_r", "error", replace=True)
    assert database.sql(f"SELECT * FROM {table}_r") == before
    assert database.leftovers() == []


def test_suppressed_rows_may_be_starred(database: Database) -> None:
    table = database.create(CODED, coded(1, 400, 10))
    policy = database.policy(table, CODED_ROLES, privacy=[{"model": "k-anonymity", "k": 3}], suppressed="star")
    run = anonymize(policy).run
    newer = database.create(CODED, coded(2, 30, 10))
    outcome = apply(database, run, newer, f"{newer}_r")
    rows = database.sql(f"SELECT * FROM {newer}_r")
    assert len(rows) == 30
    assert 0 < outcome.release.suppressed == sum(row[:2] == ("*", "*") for row in rows) < 30


@pytest.mark.parametrize(
    ("columns", "rows", "problem"),
    [
        ({"c": "VARCHAR(3)", "s": "VARCHAR(1)"}, [("x", "a")] * 9, "attributes.z: .* no such column"),
        ({**CODED, "more": "INTEGER"}, [("x", "100", "a", 1)] * 9, "without a role: 'more'"),
        ({**CODED, "z": "INTEGER"}, [("x", 100, "a")] * 9, "Column 'z' holds values of kind integer"),
        (CODED, [("new", "100", "a")] * 9, "'c'"),
    ],
    ids=["missing", "odd", "other type", "unknown to the hierarchy"],
)
def test_rows_that_do_not_fit(database: Database, columns: Mapping[str, str], rows: list[Row], problem: str) -> None:
    run, _ = _simple(database)
    newer = database.create(columns, rows)
    with pytest.raises(PolicyError, match=problem):
        apply(database, run, newer, f"{newer}_r", "error")
    assert database.leftovers() == []


def test_values_longer_than_the_mask_are_refused(database: Database) -> None:
    table = database.create({**CODED, "z": "TEXT"}, coded(1, 60, 10))
    run = anonymize(database.policy(table, CODED_ROLES, privacy=[{"model": "k-anonymity", "k": 3}])).run
    newer = database.create({**CODED, "z": "TEXT"}, [("x", "10000", "a")] * 9)
    with pytest.raises(PolicyError, match="5 characters, and the mask's length is 3") as refused:
        apply(database, run, newer, f"{newer}_r", "error")
    assert "--on-violation suppress" in refused.value.__notes__[0]


def test_rows_that_no_rule_knows_may_be_suppressed(database: Database) -> None:
    run, _ = _simple(database)
    columns, known = {**CODED, "z": "TEXT"}, coded(1, 60, 10)
    newer = database.create(columns, [*known, ("i's", "100", "a"), (None, "100000", "b"), ("new", "1000000", "b")])
    outcome = apply(database, run, newer, f"{newer}_r")
    alone = apply(database, run, database.create(columns, known), f"{newer}_k")
    assert (outcome.source.rows, outcome.release.suppressed) == (63, 3 + alone.release.suppressed)
    assert all(not check.violations for check in (outcome.checks or {}).values())
    rows = database.sql(f"SELECT * FROM {newer}_r ORDER BY 1, 2, 3")
    assert rows == database.sql(f"SELECT * FROM {newer}_k ORDER BY 1, 2, 3")
    assert len(rows) == 63 - outcome.release.suppressed
    with pytest.raises(ProtectionError, match="No rule is about any of these rows"):
        apply(database, run, database.create(columns, [("i's", "100", "a")] * 9), f"{newer}_n")
    assert database.leftovers() == []


@pytest.mark.parametrize("hierarchy", [False, True])
def test_rows_go_down_the_tree_alike_by_joins_and_by_a_case(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, hierarchy: bool
) -> None:
    """Only a tree without hierarchies goes by a CASE."""
    roles = ROLES if hierarchy else {**ROLES, "z": "quasi-identifier"}
    with open_database(postgres_url) as database:
        name = database.create(COLUMNS, table(1, 200, 0))
        run = anonymize(database.policy(name, roles, privacy=[K])).run
        replaced(database, name, table(2, 300, 3))
        ways = []
        for most in (route_rows.MOST_RULES, 0):
            monkeypatch.setattr(route_rows, "MOST_RULES", most)
            outcome = apply(database, run, name, f"{name}_{most}", budget=0.9)
            ways.append((released(database, f"{name}_{most}"), joins(database, outcome.run)))
    (by_case, case_joins), (by_joins, joined) = ways
    assert by_case == by_joins
    assert (case_joins < joined) is not hierarchy


def test_kept_columns_may_lie_in_a_word_of_their_own(database: Database) -> None:
    """Ten columns of six bits leave no room for another one in a word of 63."""
    names = [f"q{number}" for number in range(10)]
    columns = dict.fromkeys([*names, "s"], "INTEGER")
    table = database.create(columns, [(n,) * 11 for n in range(60)])
    roles = {**dict.fromkeys(names, "quasi-identifier"), "s": "sensitive"}
    run = anonymize(database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 3}])).run
    apply(database, run, table, f"{table}_again")
    assert database.sql(f"SELECT s FROM {table}_again ORDER BY s") == [(n,) for n in range(60)]
    assert database.sql(f"SELECT min(n) FROM (SELECT count(*) AS n FROM {table}_again GROUP BY q0) AS c") == [(3,)]


def joins(database: Database, run: str) -> int:
    """Count the joins that sent the rows of a run down the tree of rules."""
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        (step,) = (step for step in catalog.steps(run) if step.name == "releases/rules/route_rows")
    return step.statement.count("JOIN")


def test_the_loss_counts_rows_that_no_rule_knows(database: Database) -> None:
    columns, roles = (
        {"c": "VARCHAR(3)"},
        {"c": {"role": "quasi-identifier", "hierarchy": {"mapping": {"a": "1", "b": "1"}}}},
    )
    table = database.create(columns, [("a",), ("b",)] * 10)
    run = anonymize(database.policy(table, roles, algorithm={"name": "optimal"}, suppression=0.1)).run
    newer = database.create(columns, [*[("a",)] * 6, ("b",), ("x",), ("y",), ("y",)])
    outcome = apply(database, run, newer, f"{newer}_r")
    assert (outcome.release.suppressed, outcome.metrics.gcp, (outcome.quasi_identifiers or ())[0].loss) == (4, 0.4, 0.4)


def test_a_run_that_fails_leaves_no_rules(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlanon.releases.equivalence_classes.check_release", lambda *_: 1 / 0)
    table = database.create(CODED, coded(1, 60, 10))
    with pytest.raises(ZeroDivisionError):
        anonymize(database.policy(table, CODED_ROLES))
    assert not [
        name
        for (name,) in database.sql("SELECT table_name FROM information_schema.tables")
        if name.startswith("rules_")
    ]
    assert database.sql("SELECT * FROM sqlanon.work_tables") == []


def test_downgrading_the_catalog_drops_the_rules(database: Database) -> None:
    run, _ = _simple(database)
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        read_rules(catalog, run)
        catalog.downgrade("0001")
    names = [name for (name,) in database.sql("SELECT table_name FROM information_schema.tables")]
    assert not [name for name in names if name.startswith("rule")]
    with (
        connect(database.url) as engine,
        Catalog.open(engine) as catalog,
        pytest.raises(PolicyError, match="holds no rules of run"),
    ):
        read_rules(catalog, run)


def test_rules_go_from_file_to_file(tmp_path: Path) -> None:
    source, newer, out = (tmp_path / name for name in ("old.csv", "new.csv", "released.csv"))
    for path, first in ((source, 0), (newer, 1000)):
        path.write_text("n,s\n" + "".join(f"{i * 7 % 50},{'ab'[i % 2]}\n" for i in range(first, first + 60)))
    policy = build_policy(
        {
            "source": {"file": str(source)},
            "release": {"file": str(tmp_path / "first.csv")},
            "attributes": {"n": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}},
            "privacy": [{"model": "k-anonymity", "k": 3}],
        }
    )
    run = anonymize(policy).run
    url = f"duckdb:///{local_catalog(str(source), str(out))}"
    with connect(url) as engine, Catalog.open(engine) as catalog:
        found = catalog.run(run)
    outcome = apply_rules(Application(run, str(newer), str(out), "suppress"), found, (url, "sqlanon"), options=OPTIONS)
    assert outcome.verified
    assert json.loads(json.dumps(outcome.as_json()))["algorithm"]["applied"] == run
    assert out.read_text().startswith("n,s\n")


@pytest.mark.parametrize(
    ("source", "to", "out", "places"),
    [
        ({"table": "people"}, "new.parquet", "./new_r", ("{here}/new.parquet", "{here}/new_r")),
        ({"file": "/data/people"}, "hdfs://data/new", "s3a://data/new_r", ("hdfs://data/new", "s3a://data/new_r")),
        ({"table": "people"}, "clinic.new", "new_r", ("clinic.new", "new_r")),
    ],
)
def test_the_engine_of_the_rules_reads_and_writes_files_beside_tables(
    source: dict[str, str],
    to: str,
    out: str,
    places: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark, with the secret of its URL, which the catalog does not keep."""
    url = "sc://host/;token=s3cr3t"
    policy = build_policy(
        {
            "source": {"url": url, **source},
            "release": {"table": "people_r"},
            "catalog": {"url": "duckdb:///catalog.duckdb"},
            "attributes": {"n": {"role": "quasi-identifier"}},
            "privacy": [{"model": "k-anonymity", "k": 3}],
        }
    )
    opened: list[Policy] = []

    def open_session(policy: Policy, *_: object, **__: object) -> None:
        opened.append(policy)
        raise InterruptedError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sqlanon.runs.applying.open_session", open_session)
    run: Any = SimpleNamespace(id="1", policy=policy_text(policy))
    assert "s3cr3t" not in run.policy
    with pytest.raises(InterruptedError):
        apply_rules(Application("1", to, out), run, ("duckdb:///catalog.duckdb", "sqlanon"), policy)
    (applied,) = opened
    assert applied.source.url == url
    assert (applied.source.file or applied.source.table, applied.release.file or applied.release.table) == tuple(
        place.format(here=tmp_path) for place in places
    )
    assert (applied.source.file is None) == (to == "clinic.new")
    assert (applied.release.file is None) == (out == "new_r")
