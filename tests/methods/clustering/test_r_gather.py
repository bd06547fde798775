"""r-gather: radii against the least possible, the two tables on both engines, and what is refused."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon import run_record
from sqlanon.cli.record import record_text
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError, SqlanonError, VerificationError
from sqlanon.report.release_audit.auditing import audit_classes
from sqlanon.report.run_record.check import RecordCheck, check_record
from sqlanon.report.run_record.record import document_digest, sealed
from sqlanon.results.search_facts import GatheredFacts
from sqlanon.runs.tradeoffs.sweeping import sweep
from sqlanon.sql import Statement
from sqlanon.values.digest import digests_of
from tests.cli.support import call
from tests.methods.clustering.test_gathering import POINTS
from tests.oracle.gathering import least_radius
from tests.random_cases import many
from tests.run_support import Database, Row, anonymize, duckdb_url, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

QUASI = "quasi-identifier"
GATHER = {"name": "r-gather", "radius": "least"}
PLAIN = {**GATHER, "standardize": False}
COLUMNS = {"a": "INTEGER", "b": "DOUBLE PRECISION", "ill": "VARCHAR", "pay": "DECIMAL(10,2)", "number": "INTEGER"}
ROLES = {"a": QUASI, "b": QUASI, "ill": "sensitive", "pay": "sensitive", "number": "identifier"}


def anonymity(k: int) -> list[dict[str, Any]]:
    return [{"model": "k-anonymity", "k": k}]


def people(rows: int) -> list[Row]:
    draw = random.Random(rows)
    return [
        (
            draw.randrange(100),
            round(draw.gauss(0, 10), 3),
            draw.choice(["x", "y", "", "é", None]),
            draw.choice([None, 10, 20.5, 30]),
            number,
        )
        for number in range(rows)
    ]


@settings(max_examples=many(3), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=POINTS, r=st.integers(1, 4), share=st.sampled_from([0, 0.12, 0.25]))
def test_the_greatest_radius_is_near_the_least_possible(
    database: Database, rows: list[tuple[int, int]], r: int, share: float
) -> None:
    """Of whole runs; `test_the_search_is_within_its_bound` has more tables."""
    budget = int(share * len(rows))
    released = database.release_once(
        {"a": "INTEGER", "b": "INTEGER"},
        list(rows),
        {"a": QUASI, "b": QUASI},
        algorithm=PLAIN,
        privacy=anonymity(r),
        suppression=share,
    )
    database.sql(f"DROP TABLE IF EXISTS {_last_values(database)}")
    assert released is not None
    assert all(row[3] >= r for row in released)
    assert len(rows) - budget <= sum(row[3] for row in released) <= len(rows)
    assert all(row[1:3] in rows for row in released)
    least = least_radius(rows, r, budget)
    assert max(row[4] for row in released) <= (4 if budget else 2) * least + 1e-4


def _last_values(database: Database) -> str:
    found = database.sql("SELECT table_name FROM information_schema.tables WHERE table_name LIKE '%_r_values'")
    return max((name for (name,) in found), default="nothing")


def test_both_tables_tell_of_all_rows_and_nothing_else(database: Database) -> None:
    rows = people(60)
    table = database.create(COLUMNS, rows)
    result = anonymize(database.policy(table, ROLES, algorithm=GATHER, privacy=anonymity(5)))
    clusters = database.sql(f"SELECT * FROM {table}_r")
    values = database.sql(f"SELECT * FROM {table}_r_values")
    assert [name for name, _ in database.columns(f"{table}_r")] == ["cluster", "a", "b", "rows", "radius"]
    assert [name for name, _ in database.columns(f"{table}_r_values")] == ["cluster", "column", "value", "count"]
    assert [row[0] for row in clusters] == list(range(1, len(clusters) + 1))
    assert len(clusters) > 2
    for place, name in ((2, "ill"), (3, "pay")):
        told: Counter[Any] = Counter()
        for _, column, value, count in values:
            told[value] += count * (column == name)
        expected = Counter(row[place] if name == "ill" or row[place] is None else float(row[place]) for row in rows)
        assert {k if name == "ill" or k is None else float(k): n for k, n in told.items() if n} == expected
    of_clusters = {row[0]: row[3] for row in clusters}
    sums = Counter[tuple[int, str]]()
    for cluster, column, _, count in values:
        sums[cluster, column] += count
    assert sums == {(cluster, name): n for cluster, n in of_clusters.items() for name in ("ill", "pay")}
    facts = result.algorithm.facts
    assert isinstance(facts, GatheredFacts)
    assert facts.gathered == len(clusters) == result.release.classes
    assert 1 <= facts.factor <= 2
    assert result.release.rows == 60
    assert result.verified
    assert database.leftovers() == []


def test_every_row_is_within_the_radius_of_a_centre(database: Database) -> None:
    rows = people(80)
    table = database.create(COLUMNS, rows)
    clusters = database.release(table, ROLES, algorithm=GATHER, privacy=anonymity(4))
    scales = [statistics.stdev([row[place] for row in rows]) for place in (0, 1)]
    for row in rows:
        near = [
            math.dist((row[0] / scales[0], row[1] / scales[1]), (one[1] / scales[0], one[2] / scales[1])) <= one[4]
            for one in clusters
        ]
        assert any(near)


def test_engines_release_the_same_bytes(tmp_path: Path, postgres_url: str) -> None:
    found = []
    for url in (duckdb_url(tmp_path / "a.duckdb"), postgres_url):
        with open_database(url) as database:
            table = database.create(COLUMNS, people(150))
            policy = database.policy(table, ROLES, algorithm=GATHER, privacy=anonymity(3), suppression=0.05)
            facts = anonymize(policy).algorithm.facts
            tables = [database.sql(f"SELECT * FROM {name}") for name in (f"{table}_r", f"{table}_r_values")]
            found.append((facts, [[tuple(map(repr, row)) for row in rows] for rows in tables]))
    assert found[0] == found[1]


def test_remote_rows_are_left_out_within_the_budget(database: Database) -> None:
    rows = [(number % 7, 0.0, "x", 1, number) for number in range(38)] + [
        (5000, 0.0, "y", 2, 38),
        (-900, 0.0, "y", 2, 39),
    ]
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, ROLES, algorithm=PLAIN, privacy=anonymity(3), suppression=0.05)
    result = anonymize(policy)
    assert result.release.suppressed == 2
    assert max(row[4] for row in database.sql(f"SELECT * FROM {table}_r")) < 7
    assert not database.sql(f"SELECT * FROM {table}_r_values WHERE value = 'y'")


def test_other_models_hold_on_the_values_of_clusters(database: Database) -> None:
    rows = [(number % 10, number / 7, "xyz"[number % 3] if number % 10 else "x", 1, number) for number in range(90)]
    table = database.create(COLUMNS, rows)
    models = [*anonymity(3), {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}]
    result = anonymize(database.policy(table, ROLES, algorithm=GATHER, privacy=models))
    assert result.verified
    lines = database.sql(f"SELECT cluster, count(*) FROM {table}_r_values WHERE \"column\" = 'ill' GROUP BY cluster")
    assert lines
    assert all(count >= 2 for _, count in lines)


def test_a_release_is_replaced_with_its_second_table(database: Database) -> None:
    table = database.create(COLUMNS, people(40))
    policy = database.policy(table, ROLES, algorithm=GATHER, privacy=anonymity(4))
    anonymize(policy)
    database.sql(f"CREATE VIEW {table}_seen AS SELECT * FROM {table}_r_values")
    database.insert(table, [(50, 0.0, "new", 7, 99)])
    with pytest.raises(PolicyError, match="_r_values"):
        anonymize(policy)
    anonymize(policy, replace=True)
    assert database.sql(f"SELECT count FROM {table}_seen WHERE value = 'new'") == [(1,)]
    database.sql(f"DROP VIEW {table}_seen")


def test_a_table_of_somebody_else_is_not_taken(database: Database) -> None:
    table = database.create(COLUMNS, people(40))
    database.create({"mine": "INTEGER"}, [(1,)], name=f"{table}_r_values")
    with pytest.raises(PolicyError, match="_r_values"):
        anonymize(database.policy(table, ROLES, algorithm=GATHER), replace=True)
    assert database.sql(f"SELECT * FROM {table}_r_values") == [(1,)]


def test_equal_rows_are_one_cluster(database: Database) -> None:
    table = database.create(COLUMNS, [(7, 1.5, "x", 1, number) for number in range(9)])
    released = database.release(table, ROLES, algorithm=GATHER, privacy=anonymity(3))
    assert [row[:4] for row in released] == [(1, 7, 1.5, 9)]
    assert released[0][4] < 1e-15


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"release": {"table": "nowhere", "layout": "star"}}, "layout: star"),
    ({"suppression": 0.1, "suppressed": "star"}, "use omit"),
    ({"roles": {**ROLES, "ill": QUASI}}, "distances of numbers"),
    ({"roles": {**ROLES, "a": {"role": QUASI, "show": "mean"}}}, "leave show out"),
    (
        {"suppression": 0.1, "privacy": [*anonymity(2), {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}]},
        "k-anonymity alone",
    ),
]


@pytest.mark.parametrize(("more", "problem"), REFUSED)
def test_policies_without_a_meaning_are_refused_before_any_work(
    database: Database, more: dict[str, Any], problem: str
) -> None:
    table = database.create(COLUMNS, people(20))
    given = dict(more)
    policy = database.policy(table, given.pop("roles", ROLES), algorithm=GATHER, **given)
    with pytest.raises(PolicyError, match=problem):
        anonymize(policy)
    assert not database.sql("SELECT 1 FROM information_schema.tables WHERE table_name = 'nowhere'")


def test_more_rows_asked_for_than_there_are(database: Database) -> None:
    table = database.create(COLUMNS, people(6))
    with pytest.raises(PolicyError, match="the table holds 6 rows"):
        anonymize(database.policy(table, ROLES, algorithm=GATHER, privacy=anonymity(7)))


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_values_without_a_distance_are_refused(database: Database, value: float | None) -> None:
    table = database.create(COLUMNS, [*people(20), (1, value, "x", 1, 21)])
    with pytest.raises(PolicyError, match="1 row holds"):
        anonymize(database.policy(table, ROLES, algorithm=GATHER))


TAMPERED = [
    (
        "staging/stage_clusters",
        "staging",
        'UPDATE {t} SET "rows" = "rows" + 1 WHERE cluster = 1',
        "clusters_true",
    ),
    ("staging/stage_clusters", "staging", "UPDATE {t} SET radius = radius / 4", "radius_holds"),
    (
        "staging/stage_clusters",
        "staging",
        "UPDATE {t} SET a = a + 1 WHERE cluster = 2",
        "clusters_true",
    ),
    ("staging/stage_clusters", "staging", "DELETE FROM {t} WHERE cluster = 1", "rows_add_up"),
    (
        "staging/stage_values",
        "staging",
        "DELETE FROM {t} WHERE cluster = 1 AND value = 'x'",
        "values_counted",
    ),
    (
        "staging/stage_values",
        "staging",
        "UPDATE {t} SET value = 'y' WHERE value = 'x'",
        "values_counted",
    ),
    (
        "staging/stage_values",
        "staging",
        "UPDATE {t} SET cluster = 3 - cluster WHERE cluster < 3",
        "values_counted",
    ),
    ("methods/clustering/gathering/describe_clusters", "regions", "UPDATE {t} SET n = n + 1", "clusters_true"),
    (
        "methods/clustering/search/assign_rows",
        "assigned",
        "UPDATE {t} SET leaf = (SELECT min(leaf) FROM {t})",
        "radius_holds",
    ),
    ("methods/clustering/gathering/join_nearest", "clustered", "DELETE FROM {t}", "nothing was published|rows_add_up"),
]


@pytest.mark.parametrize("part", range(3))
def test_what_is_tampered_with_is_not_published(database: Database, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    table = database.create(COLUMNS, people(30))
    policy = database.policy(table, ROLES, algorithm=GATHER, privacy=anonymity(5))
    anonymize(policy)
    before = _both(database, table)
    original = Engine.run
    for template, parameter, statement, failing in TAMPERED[part::3]:

        def run(engine: Engine, sent: str, /, **values: Any) -> Any:
            found = original(engine, sent, **values)
            if sent == template:  # noqa: B023
                engine.execute(Statement("test", statement.format(t=values[parameter])))  # noqa: B023
            return found

        monkeypatch.setattr(Engine, "run", run)
        with pytest.raises(VerificationError, match=failing):
            anonymize(policy, replace=True)
        assert _both(database, table) == before
        assert database.leftovers() == []


def _both(database: Database, table: str) -> list[list[Row]]:
    return [database.sql(f"SELECT * FROM {name} ORDER BY 1, 2, 3") for name in (f"{table}_r", f"{table}_r_values")]


@pytest.mark.parametrize("replace", [False, True])
def test_both_tables_are_published_or_none(database: Database, monkeypatch: pytest.MonkeyPatch, replace: bool) -> None:
    """The last statement about the second table fails: the first one is not published either."""
    table = database.create(COLUMNS, people(40))
    policy = database.policy(table, ROLES, algorithm=GATHER, privacy=anonymity(4))
    if replace:
        anonymize(policy)
        before = _both(database, table)
        database.insert(table, [(50, 0.0, "new", 7, 99)])
    original = Engine.run

    def run(engine: Engine, sent: str, /, **values: Any) -> Any:
        found = original(engine, sent, **values)
        ends = sent == "work/publish/rename_table" and str(values["name"]).strip('"') == f"{table}_r_values"
        if ends or sent == "work/publish/insert_rows":
            raise VerificationError("on purpose")
        return found

    monkeypatch.setattr(Engine, "run", run)
    with pytest.raises(SqlanonError, match="on purpose"):
        anonymize(policy, replace=replace)
    if replace:
        assert _both(database, table) == before
    else:
        names = {name for (name,) in database.sql("SELECT table_name FROM information_schema.tables")}
        assert not {f"{table}_r", f"{table}_r_values"} & names
    assert database.leftovers() == []


def test_what_is_for_releases_of_rows_is_refused_by_name(database: Database) -> None:
    table = database.create(COLUMNS, people(20))
    policy = database.policy(table, ROLES, algorithm=GATHER)
    with pytest.raises(PolicyError, match="r-gather"):
        sweep(policy, [2, 3])


def test_published_clusters_are_judged_by_both_tables(database: Database) -> None:
    table = database.create(COLUMNS, people(30))
    diverse = {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}
    models = [*anonymity(3), diverse, {"model": "t-closeness", "attribute": "pay", "distance": "ordered", "t": 0.9}]
    policy = database.policy(table, ROLES, algorithm=GATHER, privacy=models)
    anonymize(policy)
    audit = audit_classes(policy)
    assert audit.satisfied
    assert audit.verification is not None
    assert [one.satisfied for one in audit.verification.models] == [True] * 3
    assert audit.verification.statistics.rows == 30
    values = f'"{table}_r_values"'
    database.sql(f"UPDATE {values} SET value = 'x' WHERE cluster = 1 AND \"column\" = 'ill'")
    tampered = audit_classes(policy)
    assert tampered.verification is not None
    assert [one.satisfied for one in tampered.verification.models] == [True, False, True]
    assert not tampered.failed
    database.sql(f"DELETE FROM {values} WHERE cluster = 2 AND \"column\" = 'pay'")
    assert audit_classes(policy).failed == ("counts_add_up",)
    database.sql(f"DROP TABLE {values}")
    with pytest.raises(PolicyError, match="which r-gather publishes beside its clusters"):
        audit_classes(policy)


@pytest.mark.parametrize("kind", ["INTEGER", "DATE", "BOOLEAN", "DECIMAL(4, 1)"])
def test_a_text_that_is_no_value_of_its_column_is_a_violation(database: Database, kind: str) -> None:
    example = {"INTEGER": 3, "DATE": date(2024, 2, 29), "BOOLEAN": True, "DECIMAL(4, 1)": 1.5}[kind]
    rows = [(number, example) for number in range(9)]
    table = database.create({"place": "INTEGER", "seen": kind}, rows)
    policy = database.policy(table, {"place": QUASI, "seen": "sensitive"}, algorithm=GATHER)
    anonymize(policy)
    assert audit_classes(policy).satisfied
    database.sql(f"UPDATE \"{table}_r_values\" SET value = 'secret' WHERE cluster = 1")
    with pytest.raises(VerificationError, match=f"{table}_r_values\"? holds a text of column 'seen'") as raised:
        audit_classes(policy)
    assert "secret" not in str(raised.value)


def test_the_record_tells_of_changes_of_either_table(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        table = database.create(COLUMNS, people(20))
        policy = database.policy(table, ROLES, algorithm=GATHER, digest="run")
        record = run_record(anonymize(policy).run, policy=policy)
        late = sealed({**record, "release": {**record["release"], "digest": None}}, database.url, None)
        assert late["release"]["digest"] == record["release"]["digest"]
        first, second = f"{table}_r", f'"{table}_r_values"'

        def checked(document: dict[str, Any] | None = None) -> RecordCheck:
            return check_record(document or record, url=database.url)

        assert checked().satisfied
        assert checked().tables == (first, second)
        part = {**record, "release": {**record["release"], "digest": digests_of(record["release"]["digest"])[0]}}
        old = {**part, "digest": document_digest(part)}
        assert checked(old).satisfied
        assert f"does not cover {second}" in str(checked(old).note)
        database.sql(f"UPDATE {second} SET value = 'z' WHERE cluster = 1 AND \"column\" = 'ill'")
        assert (checked().satisfied, checked().changed) == (False, (second,))
        assert f"{second} has been changed" in record_text(checked())
        assert checked(old).satisfied
        database.sql(f"UPDATE {first} SET radius = 0 WHERE cluster = 1")
        assert checked().changed == (first, second)
        assert not checked(old).satisfied
        database.sql(f"DROP TABLE {second}")
        assert (checked().satisfied, checked().note) == (False, f"{second} is no longer there.")


def test_a_file_is_refused(tmp_path: Path) -> None:
    with open_database(duckdb_url(tmp_path / "a.duckdb")) as database:
        table = database.create(COLUMNS, people(20))
        policy = database.policy(table, ROLES, algorithm=GATHER, release={"file": str(tmp_path / "r.csv")})
        with pytest.raises(PolicyError, match="a file holds one"):
            anonymize(policy)
        elsewhere = {"url": duckdb_url(tmp_path / "b.duckdb"), "table": "r"}
        with pytest.raises(PolicyError, match="database of a source table"):
            anonymize(database.policy(table, ROLES, algorithm=GATHER, release=elsewhere))


def test_the_command_runs_and_shows_its_statements(tmp_path: Path) -> None:
    with open_database(duckdb_url(tmp_path / "a.duckdb")) as database:
        database.create(COLUMNS, people(50), name="people")
    attributes = "\n".join(f"  {name}: {{role: {role}}}" for name, role in ROLES.items())
    policy = tmp_path / "p.yml"
    policy.write_text(
        f"source: {{url: 'duckdb:///{tmp_path}/a.duckdb', table: people}}\nrelease: {{table: released}}\n"
        f"attributes:\n{attributes}\nprivacy: [{{model: k-anonymity, k: 4}}]\n"
        "algorithm: {name: r-gather, radius: least}\n"
    )
    shown = call("run", str(policy), "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert '"released_values"' in shown.output
    done = call("run", str(policy), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["algorithm"]["factor"] <= 2
    shown = call("run", str(policy), "--replace")
    assert re.search(r"Released are \d+ clusters of 4 to .* at most [12][.\d]* times the least possible", shown.output)
    for more in (["--dry-run"],):
        again = call("run", str(policy), "--replace", *more)
        assert again.exit_code == 0, again.output
