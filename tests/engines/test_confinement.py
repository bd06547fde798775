"""Somebody else's DuckDB file: its views, macros and defaults can't read the files of whoever runs the program."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import EngineError
from sqlanon.sql import Statement
from tests.cli.support import call, only_object
from tests.random_cases import many

pytestmark = pytest.mark.slow

SECRET = "PRIVATE-OF-THE-RUNNER"
POLICY = """\
source:  {{url: "{url}", table: {table}}}
release: {release}
attributes:
  age:   {{role: quasi-identifier}}
  note:  {{role: {role}}}
privacy:
  - {{model: k-anonymity, k: 2}}
"""


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the runner."""
    (tmp_path / "home").mkdir()
    path = tmp_path / "home" / "secret.csv"
    path.write_text(f"age,note\n1,{SECRET}\n1,{SECRET}\n1,b\n1,b\n")
    return path


READERS = {
    "csv": "SELECT * FROM read_csv('{secret}')",
    "text": "SELECT 1 AS age, content AS note FROM read_text('{secret}')",
    "blob": "SELECT 1 AS age, decode(content) AS note FROM read_blob('{secret}')",
    "glob": "SELECT 1 AS age, file AS note FROM glob('{home}/*')",
    "macro": "SELECT * FROM reading()",
    "path": "SELECT * FROM '{secret}'",
    "up": "SELECT * FROM read_csv('{home}/../home/secret.csv')",
    "net": "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
}


@pytest.fixture
def url(tmp_path: Path, secret: Path) -> str:
    """A DuckDB file whose owner waits for somebody who can read more."""
    (tmp_path / "theirs").mkdir()
    file = tmp_path / "theirs" / "x.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(f"CREATE MACRO reading() AS TABLE SELECT * FROM read_csv('{secret}')")
        connection.execute("CREATE TABLE plain AS SELECT i // 3 AS age, 'n' AS note FROM range(12) AS t(i)")
        for name, text in READERS.items():
            if name == "net":
                continue
            connection.execute(f"CREATE VIEW v_{name} AS {text.format(secret=secret, home=secret.parent)}")
    return f"duckdb:///{file}"


@pytest.mark.parametrize("name", [name for name in READERS if name != "net"])
def test_views_and_macros_read_no_files(url: str, name: str) -> None:
    with connect(url) as engine, pytest.raises(EngineError, match="disabled by configuration"):
        engine.fetch(Statement("test", f"SELECT * FROM v_{name}"))


def test_nothing_is_loaded_and_settings_stay(url: str, secret: Path, tmp_path: Path) -> None:
    refused = [
        READERS["net"],
        "INSTALL httpfs",
        "INSTALL sqlite_scanner",
        "SET enable_external_access = true",
        f"SET allowed_paths = ['{secret}']",
        "SET allowed_directories = ['/']",
        "SET temp_directory = '/'",
        f"ATTACH '{tmp_path}/other.duckdb'",
        f"COPY plain TO '{tmp_path}/home/written.csv'",
        f"EXPORT DATABASE '{tmp_path}/exported'",
    ]
    with connect(url) as engine:
        for text in refused:
            with pytest.raises(EngineError):
                engine.execute(Statement("test", text))
        assert engine.fetch(Statement("test", "SELECT count(*) FROM plain")) == [(12,)]
        with engine.fork() as fork, pytest.raises(EngineError):
            fork.fetch(Statement("test", "SELECT * FROM v_csv"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "theirs"]


@pytest.mark.parametrize(
    ("name", "release"),
    [*zip(("csv", "text", "macro") * 2, ("table", "file", "file", "file", "table", "table"), strict=True)][: many(3)],
)
def test_commands_read_no_files_by_views(url: str, tmp_path: Path, name: str, release: str) -> None:
    out = tmp_path / "home" / "out.csv"
    place = "{table: released}" if release == "table" else f'{{file: "{out}"}}'
    policy = tmp_path / "home" / "policy.yml"
    policy.write_text(POLICY.format(url=url, table=f"v_{name}", release=place, role="insensitive"))
    commands = [
        ("init", url, f"v_{name}"),
        ("check", policy),
        ("run", policy, "-q"),
        ("verify", policy, "--table", f"v_{name}"),
        ("verify", url, f"v_{name}", "--qi", "age", "--k", "2"),
        ("utility", policy, "--target", "note"),
        ("lattice", policy),
    ]
    for command in commands:
        result = call(*command)
        assert result.exit_code != 0, command
        assert SECRET not in result.output
        assert "unexpected" not in result.output, command
    assert not out.exists()
    with duckdb.connect(url.removeprefix("duckdb:///")) as connection:
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            assert table != "released"


@pytest.mark.parametrize("name", ["out.parquet", "odd 'x' [1]*?.csv", "out.csv"][: many(2)])
def test_releases_of_a_file_are_written_where_the_policy_says(url: str, tmp_path: Path, name: str) -> None:
    out = tmp_path / "home" / name
    policy = tmp_path / "policy.yml"
    quoted = str(out).replace("'", "''")
    policy.write_text(POLICY.format(url=url, table="plain", release=f"{{file: '{quoted}'}}", role="sensitive"))
    for more in ((), ("--replace",)):
        result = call("run", policy, "-q", *more, "--memory-limit", "100MB")
        assert result.exit_code == 0, result.output
    assert call("verify", policy).exit_code == 0
    assert out.exists()


def test_a_source_file_is_read_beside_the_release_s_database(tmp_path: Path, secret: Path) -> None:
    text = POLICY.format(
        url="", table="t", release=f'{{url: "duckdb:///{tmp_path}/r.duckdb", table: r}}', role="sensitive"
    )
    policy = tmp_path / "policy.yml"
    policy.write_text(text.replace('{url: "", table: t}', f'{{file: "{secret}"}}'))
    assert call("run", policy, "-q").exit_code == 0
    assert call("run", policy, "-q", "--replace").exit_code == 0


def test_later_rows_and_jobs_read_no_files_by_views(url: str, tmp_path: Path) -> None:
    """The table that was released becomes a view after the run."""
    policy = tmp_path / "policy.yml"
    policy.write_text(POLICY.format(url=url, table="plain", release="{table: released}", role="insensitive"))
    run = only_object(call("run", policy, "-q", "--json").stdout)["run"]
    assert call("freeze", run, "--name", "nightly", "--policy", policy).exit_code == 0
    assert call("job", "run", "nightly", "-q", "--policy", policy).exit_code == 0
    with duckdb.connect(url.removeprefix("duckdb:///")) as connection:
        before = connection.execute("FROM released ORDER BY ALL").fetchall()
        connection.execute("ALTER TABLE plain RENAME TO away")
        connection.execute("CREATE VIEW plain AS SELECT age::BIGINT AS age, note FROM v_csv")
    for command in (
        ("apply", run, "--to", "plain", "--replace", "-q", "--policy", policy),
        ("job", "run", "nightly", "-q", "--policy", policy),
        ("check", policy),
        ("run", policy, "--replace", "-q"),
    ):
        result = call(*command)
        assert result.exit_code != 0, command
        assert SECRET not in result.output
        assert "unexpected" not in result.output
    with duckdb.connect(url.removeprefix("duckdb:///")) as connection:
        assert connection.execute("FROM released ORDER BY ALL").fetchall() == before


def test_releases_are_carried_to_another_file(url: str, tmp_path: Path) -> None:
    release = f'{{url: "duckdb:///{tmp_path}/r.duckdb", table: r}}'
    policy = tmp_path / "policy.yml"
    policy.write_text(POLICY.format(url=url, table="plain", release=release, role="sensitive"))
    assert call("run", policy, "-q").exit_code == 0


def test_a_second_session_of_an_instance_spills_and_reads_where_the_first_may(url: str, tmp_path: Path) -> None:
    with connect(url) as one, connect(url, EngineOptions(temp_directory=str(tmp_path))) as other:
        for engine in (one, other):
            private = engine.exchange_directory()
            assert private is not None
            engine.execute(Statement("test", f"COPY plain TO '{private}/x.csv'"))
        with pytest.raises(EngineError):
            other.fetch(Statement("test", "SELECT * FROM v_csv"))


SHADOWING = {
    "aggregate": "CREATE MACRO count_star() AS CASE WHEN system.main.count(1) < 9 THEN 9 ELSE system.main.count(1) END",
    "scalar": 'CREATE MACRO "LOWER"(x) AS 1',
    "table": "CREATE MACRO duckdb_columns() AS TABLE SELECT 1 AS x",
}


@pytest.mark.parametrize("kind", SHADOWING)
def test_macros_in_place_of_duckdb_s_own_functions_are_refused(tmp_path: Path, kind: str) -> None:
    """By the first, a table of rows that are alone would be verified as 9-anonymous."""
    file = tmp_path / "theirs.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE plain AS SELECT i AS age FROM range(12) AS t(i)")
        connection.execute("CREATE MACRO double_of(x) AS 2 * x")  # is nobody's
    arguments = ["verify", f"duckdb:///{file}", "plain", "--qi", "age", "--k", "5"]
    assert call(*arguments).exit_code == 3
    with duckdb.connect(str(file)) as connection:
        connection.execute(SHADOWING[kind])
    found = call(*arguments)
    assert (found.exit_code, "in place of its own functions" in found.output) == (2, True)
    name = SHADOWING[kind].split()[2].partition("(")[0].strip('"').lower()
    assert f': "{name}".' in found.output
