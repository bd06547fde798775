"""A population in another database: a policy's models judge by it as by the same table beside the source."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sqlanon import verify_release
from sqlanon.api.calls import check_policy
from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, PolicyError
from sqlanon.models import models_of
from sqlanon.plan import distant_population
from sqlanon.plan.distant_population import bring_population
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy, parse_stored
from sqlanon.policy.writer import policy_text
from sqlanon.runs.dry_run.running import run_dry
from tests.cli.support import call_main
from tests.postgres_server import PostgresServer
from tests.run_support import Database, Row, anonymize, duckdb_url, open_database
from tests.test_k_map import ATTRIBUTES, COLUMNS, PEOPLE

pytestmark = pytest.mark.slow

ASKED: dict[str, dict[str, Any]] = {"k-map": {"k": 6}, "delta-presence": {"maximum": 0.3}}


@dataclass(frozen=True)
class Elsewhere:
    """Another database than that of the source; nobody has it open between two calls."""

    url: str

    def create(self, columns: dict[str, str], rows: Sequence[Row]) -> str:
        with open_database(self.url) as database:
            return database.create(columns, rows)

    def sql(self, statement: str) -> None:
        with open_database(self.url) as database:
            database.sql(statement)


@pytest.fixture(params=["duckdb", "postgres"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Elsewhere]:
    if request.param == "duckdb":
        yield Elsewhere(duckdb_url(tmp_path / "elsewhere.duckdb"))
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.temporary("register") as name:
        yield Elsewhere(server.url(name))


def distant_policy(
    database: Database, population: Any, model: str = "k-map", attributes: dict[str, Any] = ATTRIBUTES
) -> Policy:
    """A policy for a sample of the people."""
    table = database.create(COLUMNS, PEOPLE[::8])
    privacy = [{"model": model, "population": population} | ASKED[model]]
    return database.policy(table, attributes, privacy=privacy, algorithm={"name": "optimal"}, suppression=0.1)


def released(database: Database, policy: Policy) -> list[tuple[Any, ...]]:
    return database.sql(f"SELECT * FROM {policy.release.table}")


@pytest.mark.parametrize("model", ASKED)
def test_releases_are_those_of_a_population_beside_the_source(
    database: Database, elsewhere: Elsewhere, model: str
) -> None:
    place = {"url": elsewhere.url, "table": elsewhere.create(COLUMNS, PEOPLE)}
    near = distant_policy(database, database.create(COLUMNS, PEOPLE), model)
    far = distant_policy(database, place, model)
    expected, run = anonymize(near), anonymize(far)
    assert released(database, far) == released(database, near)
    (judged,), (as_near,) = run.models, expected.models
    assert (judged.satisfied, judged.worst) == (True, as_near.worst)
    assert judged.parameters["population"] == f"{place['table']} of {elsewhere.url}"
    (note,) = [note for note in run.notes if "The population" in note]
    assert "400 rows of" in note
    assert "the digest rows-1:" in note
    assert verify_release(far).models == (judged,)
    elsewhere.sql(f"DELETE FROM {place['table']} WHERE s <> 'a'")
    later = verify_release(far).models[0]
    assert not later.satisfied
    assert later.violating_rows > 0


@pytest.mark.either_engine
def test_only_counted_combinations_of_quasi_identifiers_come(database: Database, elsewhere: Elsewhere) -> None:
    there = elsewhere.create({**COLUMNS, "member": "INTEGER"}, [(*row, 1) for row in PEOPLE])
    policy = distant_policy(database, {"url": elsewhere.url, "table": there})
    place = policy.population_elsewhere
    assert place is not None
    with connect(database.url) as engine:
        brought = bring_population(policy, place, engine)
        assert [column.name for column in engine.columns(brought.table)] == ["age", "zip", "born", "members"]
        assert (brought.rows, brought.classes) == (len(PEOPLE), len({row[:3] for row in PEOPLE}))
        elsewhere.sql(f"DELETE FROM {there}")
        assert bring_population(policy, place, engine) == brought


@pytest.mark.either_engine
def test_what_does_not_fit_is_refused_before_any_work(database: Database, elsewhere: Elsewhere) -> None:
    lacking = elsewhere.create({name: type_ for name, type_ in COLUMNS.items() if name != "zip"}, [])
    other_type = elsewhere.create({**COLUMNS, "age": "DECIMAL(5,2)"}, [])
    few = elsewhere.create(COLUMNS, PEOPLE[:300:8])

    def refused(table: str) -> str:
        with pytest.raises(PolicyError) as error:
            anonymize(distant_policy(database, {"url": elsewhere.url, "table": table}))
        return str(error.value)

    assert f"zip is no column of {lacking} of {elsewhere.url}" in refused(lacking)
    assert "attributes.age is INTEGER in the source, and DECIMAL(5,2) in".lower() in refused(
        other_type
    ).lower().replace("numeric", "decimal")
    assert f"privacy: the population nowhere of {elsewhere.url}: There is no table 'nowhere'" in refused("nowhere")
    assert f"the population {few} of {elsewhere.url} lacks" in refused(few)
    good = distant_policy(database, {"url": elsewhere.url, "table": few})
    with pytest.raises(PolicyError, match="a dry run does not bring the population"):
        run_dry(good)


def test_the_source_s_own_file_by_another_name_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link.duckdb"
    link.symlink_to(tmp_path / "own.duckdb")
    with open_database(duckdb_url(tmp_path / "own.duckdb")) as database:
        table = database.create(COLUMNS, PEOPLE, "people")
        policy = distant_policy(database, {"url": duckdb_url(link), "table": table})
    with pytest.raises(PolicyError, match="is in the source's database: write population: people"):
        check_policy(policy)


def test_a_role_that_may_not_read_the_population_is_told_where(tmp_path: Path, postgres_server: PostgresServer) -> None:
    postgres_server.run("CREATE ROLE no_reader LOGIN")
    try:
        with postgres_server.temporary("register") as name:
            table = Elsewhere(postgres_server.url(name)).create(COLUMNS, PEOPLE)
            there = {"url": postgres_server.url(name, "no_reader"), "table": table}
            with open_database(duckdb_url(tmp_path / "x.duckdb")) as database:
                policy = distant_policy(database, there)
            with pytest.raises(AccessError, match=rf"privacy: the population {table} of postgresql://no_reader@"):
                check_policy(policy)
    finally:
        postgres_server.run("DROP ROLE no_reader")


@pytest.mark.either_engine
def test_an_empty_population_is_a_problem_of_the_policy(database: Database, elsewhere: Elsewhere) -> None:
    places = [database.create(COLUMNS, []), {"url": elsewhere.url, "table": elsewhere.create(COLUMNS, [])}]
    for place in places:
        with pytest.raises(PolicyError, match="has no rows, so that nobody could be in the release"):
            check_policy(distant_policy(database, place))


def test_a_distant_session_has_the_limits_of_the_run(
    tmp_path: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = elsewhere.create(COLUMNS, PEOPLE)
    with open_database(duckdb_url(tmp_path / "x.duckdb")) as database:
        policy = distant_policy(database, {"url": elsewhere.url, "table": there})
    asked, own = [], distant_population.connect

    def noticed(url: str, options: EngineOptions, **more: Any) -> Any:
        asked.append(options)
        return own(url, options, **more)

    monkeypatch.setattr(distant_population, "connect", noticed)
    limits = EngineOptions(memory_limit="1GB", threads=2, statement_timeout=99)
    check_policy(policy, options=limits)
    assert asked == [limits]


@pytest.mark.either_engine
@pytest.mark.parametrize(("kind", "values"), [("ENUM ('a', 'b')", ["a", "b"]), ("NUMERIC", [1, 2])])
def test_types_that_do_not_come_as_they_were_are_cast_in_both(
    database: Database, elsewhere: Elsewhere, kind: str, values: list[Any]
) -> None:
    if kind == "NUMERIC" and database.engine == "duckdb":
        pytest.skip("DuckDB's NUMERIC has digits")
    if kind.startswith("ENUM") and database.engine == "postgres":
        database.sql(f"CREATE TYPE letter AS {kind}")
        kind = "letter"
    table = database.create({"c": kind}, [(value,) for value in values])
    there = elsewhere.create({"c": "TEXT"}, [(str(value),) for value in values])
    privacy = [{"model": "k-map", "k": 1, "population": {"url": elsewhere.url, "table": there}}]
    attributes = {"c": {"role": "quasi-identifier", "hierarchy": "suppress"}}
    policy = database.policy(table, attributes, privacy=privacy, algorithm={"name": "optimal"})
    with pytest.raises(PolicyError, match="; cast both in views"):
        check_policy(policy)


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("population", "said"),
    [
        ({"url": "duckdb:///x.duckdb"}, "must be a table of the source's database, or"),
        ({"table": "people", "url": ""}, "must be a table of the source's database, or"),
        (7, "must be a table of the source's database, or"),
        ({"table": "people", "url": "${NO_SUCH_VARIABLE}"}, "NO_SUCH_VARIABLE"),
    ],
)
def test_a_place_that_is_none_is_refused_in_a_sentence(database: Database, population: Any, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        distant_policy(database, population)


@pytest.mark.either_engine
def test_spark_and_databases_that_nobody_reaches_are_refused(database: Database, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="not carried over between Spark and another database"):
        check_policy(distant_policy(database, {"url": "spark://nobody", "table": "people"}))
    with pytest.raises(PolicyError, match="is in the source's database: write population: people"):
        check_policy(distant_policy(database, {"url": database.url, "table": "people"}))
    with pytest.raises((PolicyError, AccessError), match="nobody"):
        check_policy(distant_policy(database, {"url": duckdb_url(tmp_path / "nobody.duckdb"), "table": "people"}))


def test_a_check_shows_no_password(
    postgres_server: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, source = tmp_path / "policy.yml", duckdb_url(tmp_path / "source.duckdb")
    with postgres_server.temporary("register") as name:
        url = postgres_server.url(name, password="secret")
        table = Elsewhere(url).create(COLUMNS, PEOPLE)
        with open_database(source) as database:
            policy = distant_policy(database, {"url": url, "table": table})
        data = policy.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        file.write_text(json.dumps(data), encoding="utf-8")
        for more in ((), ("--json",)):
            code, printed, problems = call_main(capsys, "check", file, *more)
            assert (code, "secret" in printed + problems) == (0, False)
            assert f"{table} of postgresql://postgres@/{name}" in printed


def test_no_password_is_written_or_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTER", "postgresql://me:secret@host/register")
    data = {
        "source": {"url": "duckdb:///x.duckdb", "table": "t"},
        "release": {"table": "r"},
        "attributes": {"a": {"role": "quasi-identifier", "hierarchy": "suppress"}},
        "algorithm": {"name": "optimal"},
    }
    for url, shown in (
        ("${REGISTER}", "${REGISTER}"),
        ("postgresql://me:secret@host/register", "postgresql://me@host/register"),
    ):
        place = {"url": url, "table": "people"}
        policy = build_policy({**data, "privacy": [{"model": "k-map", "k": 2, "population": place}]})
        assert policy.population == f"people of {shown}"
        (model,) = models_of(policy)
        text = policy_text(policy)
        assert "secret" not in text + model.sentence + repr(policy)
        assert json.loads(text)["privacy"][0]["population"] == {"url": shown, "table": "people"}
        assert parse_stored(text).population == policy.population
