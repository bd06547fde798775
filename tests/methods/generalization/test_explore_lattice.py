"""Exploring a lattice: what is found is true, costs few checks, and leaves nothing behind; on both engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from sqlanon import explore
from sqlanon.errors import Cancelled, ProtectionError
from sqlanon.methods.generalization.explore.explore_lattice import Exploration
from sqlanon.methods.generalization.lattice.node_status import NodeStatus
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from sqlanon.work.journal import Silent
from tests.oracle.lattice import Case, cases, minimal
from tests.random_cases import many
from tests.run_support import OPTIONS, Database, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

K2 = {"model": "k-anonymity", "k": 2}
CLOSE = {"model": "t-closeness", "attribute": "s", "distance": "equal", "t": 0.4}
ALGORITHMS: list[dict[str, Any]] = [
    {"name": "incognito"},
    {"name": "samarati"},
    {"name": "bottom-up"},
    {"name": "optimal"},
    {"name": "datafly"},
]
MASK = {"role": "quasi-identifier", "hierarchy": {"mask": "right"}}
STEPS = {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}}
STAR = {"role": "quasi-identifier", "hierarchy": "suppress"}
ROLES: dict[str, Any] = {"age": STEPS, "zip": MASK, "sex": STAR, "s": "sensitive", "ward": "insensitive"}
COLUMNS = {"age": "INTEGER", "zip": "VARCHAR(3)", "sex": "VARCHAR(1)", "s": "VARCHAR(3)", "ward": "INTEGER"}
ROWS = [(20 + i * 7 % 40, str(100 + i * 13 % 37), "fm"[i % 2], "abc"[i % 3], i % 4) for i in range(60)]
KEYS = [
    "source",
    "engine",
    "algorithm",
    "quality",
    "all",
    "budget",
    "attributes",
    "heights",
    "limits",
    "nodes",
    "checked",
    "concluded",
    "complete",
    "anonymous",
    "minimal",
    "frontier",
    "optimum",
    "proven",
    "bound",
    "statements",
    "seconds",
    "warnings",
]


@pytest.fixture
def people(database: Database) -> str:
    return database.create(COLUMNS, ROWS)


def _policy(database: Database, table: str, **more: Any) -> Policy:
    given = {"privacy": [{"model": "k-anonymity", "k": 3}], "algorithm": {"name": "optimal", "quality": "height"}}
    return database.policy(table, ROLES, **given | more)


def _all(policy: Policy, **more: Any) -> Exploration:
    return explore(policy, everything=True, options=OPTIONS, **more)


# --- it is true


@settings(max_examples=many(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_all_and_the_minimal_ones_are_those_of_brute_force(database: Database, case: Case) -> None:
    table = database.create(case.columns, case.rows)
    policy = database.policy(table, case.attributes, algorithm={"name": "optimal", "quality": "height"}, **case.policy)
    satisfying = case.satisfying()
    if not satisfying:
        with pytest.raises(ProtectionError):
            _all(policy)
        return
    found = _all(policy)
    assert set(found.anonymous) == satisfying
    assert set(found.minimal) == minimal(satisfying)
    assert found.complete
    assert found.proven
    assert found.optimum.levels == min(satisfying, key=lambda node: (sum(node), node))
    assert found.optimum.suppressed == len(case.suppressed_rows(found.optimum.levels))
    assert [one.suppressed for one in found.frontier] == [len(case.suppressed_rows(o.levels)) for o in found.frontier]


@pytest.mark.either_engine
@settings(max_examples=many(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_whatever_an_algorithm_knows_is_true(database: Database, case: Case) -> None:
    table = database.create(case.columns, case.rows)
    satisfying = case.satisfying()
    for algorithm in ALGORITHMS if satisfying else []:
        policy = database.policy(table, case.attributes, algorithm={**algorithm, "quality": "height"}, **case.policy)
        found = explore(policy, options=OPTIONS)
        assert set(found.anonymous) <= satisfying
        assert found.optimum.levels in satisfying
        assert found.chart is not None
        assert not any(found.chart.of(node) is NodeStatus.FAILING for node in satisfying)
        if found.complete:
            assert set(found.anonymous) == satisfying


def test_both_ways_to_the_optimum_agree(database: Database, people: str) -> None:
    for quality in ("loss", "precision", "aecs"):
        policy = _policy(database, people, suppression=0.1, algorithm={"name": "optimal", "quality": quality})
        one, other = explore(policy, options=OPTIONS), _all(policy)
        assert one.optimum == other.optimum
        assert one.proven
        assert other.proven


def test_the_optimum_is_what_a_run_releases(database: Database, people: str) -> None:
    for algorithm in ALGORITHMS:
        policy = _policy(database, people, algorithm=algorithm, suppression=0.1)
        optimum, ran = explore(policy, options=OPTIONS).optimum, anonymize(policy, replace=True).as_json()
        assert list(ran["algorithm"]["levels"].values()) == list(optimum.levels)
        assert ran["algorithm"]["score"] == optimum.score
        assert ran["release"]["suppressed"] == optimum.suppressed


def test_limits_are_the_lattice_s(database: Database, people: str) -> None:
    policy = _policy(database, people, algorithm={"name": "optimal", "limits": {"age": [1, 3], "zip": [2, 3]}})
    found = _all(policy)
    assert found.as_json()["limits"] == [[1, 3], [2, 3], [0, 1]]
    assert found.lattice.size == 3 * 2 * 2
    assert all(1 <= node[0] <= 3 and node[1] >= 2 for node in found.anonymous)


# --- it costs few checks


def test_the_object_has_the_documented_keys_and_counts(database: Database, people: str) -> None:
    found = _all(_policy(database, people)).as_json()
    assert list(found) == KEYS
    assert found["attributes"] == ["age", "zip", "sex"]
    assert found["heights"] == [4, 3, 1]
    assert found["nodes"] == 5 * 4 * 2
    assert found["checked"] + found["concluded"] == found["nodes"]
    assert set(found["optimum"]) == {"levels", "score", "suppressed"}
    assert found["optimum"] in found["frontier"]
    assert found["minimal"] == sorted(one["levels"] for one in found["frontier"])


def test_a_check_is_one_statement_and_most_nodes_need_none(database: Database, people: str) -> None:
    found = _all(_policy(database, people))
    assert found.checked < found.lattice.size // 2
    few = _all(_policy(database, people, algorithm={"name": "optimal", "quality": "height", "limits": {"sex": [1, 1]}}))
    assert found.statements - found.checked == few.statements - few.checked


def test_the_scores_of_what_is_shown_are_statements_too(
    database: Database, people: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = _policy(database, people, algorithm={"name": "incognito", "quality": "discernibility"})
    found = explore(policy, options=OPTIONS)
    monkeypatch.setattr("sqlanon.methods.generalization.explore.explore_lattice.SCORED", 0)
    assert found.statements == explore(policy, options=OPTIONS).statements + len(found.frontier)


def test_what_no_conclusion_reaches_is_checked_height_by_height(database: Database, people: str) -> None:
    found = _all(_policy(database, people, privacy=[K2, CLOSE], suppression=0.2, suppressed={"star": "unprotected"}))
    assert found.complete
    rest = found.statements - (sum(found.lattice.heights) + 1)
    assert rest < 20
    assert found.checked > rest


def test_columns_that_nothing_looks_at_are_not_read(database: Database, people: str) -> None:
    _all(_policy(database, people))
    if database.engine == "postgres":
        texts = [text for (text,) in database.sql("SELECT statement FROM sqlanon.steps WHERE phase = 'encode'")]
        assert texts
        assert not any('"ward"' in text for text in texts)


# --- it leaves nothing behind


def _tables(database: Database) -> Sequence[tuple[Any, ...]]:
    return database.sql(
        "SELECT table_schema, table_name FROM information_schema.tables"
        " WHERE table_schema NOT IN ('pg_catalog', 'information_schema', 'sqlanon') ORDER BY 1, 2"
    )


def test_nothing_is_written_and_no_place_for_a_release_is_needed(database: Database, people: str) -> None:
    before = _tables(database)
    for place in ({"table": "no_such_schema.released"}, {"table": people}, {"file": "/no/such/directory/r.csv"}):
        for everything in (False, True):
            explore(_policy(database, people, release=place), everything=everything, options=OPTIONS)
    assert _tables(database) == before
    assert database.leftovers() == []


def test_postgres_records_an_exploration_as_dry_and_duckdb_nothing(database: Database, people: str) -> None:
    explore(_policy(database, people), options=OPTIONS)
    if database.engine == "duckdb":
        assert database.sql("SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'sqlanon'") == []
        return
    assert database.sql("SELECT status, release FROM sqlanon.runs") == [("dry", "-")]
    assert database.sql("SELECT * FROM sqlanon.work_tables") == []
    assert database.sql("SELECT count(*) > 5 FROM sqlanon.steps") == [(True,)]


def test_a_policy_of_another_search_is_explored_as_optimal(database: Database, people: str) -> None:
    found = explore(_policy(database, people, algorithm={"name": "mondrian"}), options=OPTIONS)
    assert (found.algorithm, found.quality) == ("optimal", "loss")


def test_a_file_is_explored(tmp_path: Path) -> None:
    lines = ["age,zip,sex,s,ward", *(",".join(map(str, row)) for row in ROWS)]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    given = {"source": {"file": str(tmp_path / "people.csv")}, "release": {"file": str(tmp_path / "r.csv")}}
    roles = {name: {"role": a} if isinstance(a, str) else a for name, a in ROLES.items()}
    roles["zip"] = STAR
    policy = build_policy({**given, "attributes": roles, "privacy": [K2], "algorithm": {"name": "optimal"}})
    assert explore(policy, everything=True).complete
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv"]


# --- it stops


def test_a_time_limit_leaves_the_rest_open(database: Database, people: str) -> None:
    policy = _policy(database, people)
    with pytest.raises(ProtectionError, match="Within the time limit, no generalization was found"):
        _all(policy, time_limit=1e-9)


class _Impatient(Silent):
    """Interrupts after a few checks, as Ctrl-C between two statements does."""

    def __init__(self) -> None:
        self.checks = 0

    def progress(self, progress: Any) -> None:  # noqa: ARG002
        self.checks += 1
        if self.checks == 3:
            raise KeyboardInterrupt


def test_an_interrupt_leaves_no_work_tables(database: Database, people: str) -> None:
    with pytest.raises(Cancelled):
        _all(_policy(database, people), observer=_Impatient())
    assert database.leftovers() == []
    if database.engine == "postgres":
        assert database.sql("SELECT status FROM sqlanon.runs") == [("cancelled",)]
