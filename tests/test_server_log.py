"""The server's log holds no value of the data, even where the server logs every statement with its parameters."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sqlanon.engines.postgres.engine import PostgresEngine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, EngineError
from sqlanon.methods.differential_privacy.mechanism_audit.own_database import nameless
from sqlanon.sql import RedactedValue, Statement
from tests.cli.support import call
from tests.postgres_server import PostgresServer, find_binaries, start
from tests.private_leaks import FEW, MANY, left_behind
from tests.run_support import Row, open_database

pytestmark = pytest.mark.slow

LOUD = {"log_statement": "all", "log_min_duration_statement": "0", "log_min_messages": "notice"}
COLUMNS = {
    "ssn": "VARCHAR(20)",
    "small": "SMALLINT",
    "age": "INTEGER",
    "zero": "INTEGER",
    "seen": "BIGINT",
    "income": "NUMERIC(12,2)",
    "weight": "DOUBLE PRECISION",
    "born": "DATE",
    "at": "TIMESTAMP",
    "town": "VARCHAR(20)",
    "sex": "VARCHAR(1)",
    "disease": "VARCHAR(20)",
    "pay": "INTEGER",
    "note": "TEXT",
}
FIRST_DAY = date(1871, 3, 14)
ROWS = 120
TRACES = {
    "small": r"-257\d\d",
    "age": r"770[01]\d{5}",
    "zero": r"440[01]\d\d",
    "seen": r"88000(46|47)\d*",
    "income": r"66004[12]\d{3}(\d\d)?",
    "weight": r"44003[01]\d{3}",
    "born": r"18[78]\d-\d\d|-3[3-6]\d{3}|-3[01]\d{8}",
    "texts": r"QX\w+",
    "pay": r"5500(16|17)\d{3}",
}
"""Patterns of values, of those near them and of those shifted by one; of dates also days and seconds since 1970."""

BAND = re.compile(r'"label": "[^"]*"')
"""A band of a recorded distribution, which lies between round numbers or months."""


def row(number: int) -> Row:
    """A row whose values are told from all else that a log holds."""
    n = number * 7 % 97
    day = FIRST_DAY + timedelta(days=n * 11)
    return (
        f"QXs{number:04d}",
        -25_700 - n,
        770_000_000 + n * 1000,
        n and 44_000 + n,
        8_800_047_000_000 + n * 1000,
        f"{660_042_000 + n}.37",
        440_031_000.0625 + n,
        day.isoformat(),
        f"{day.isoformat()} 13:57:{n % 60:02d}",
        f"QXt{n % 8:04d}",
        "fm"[number % 2],
        f"QXd{number // 3 % 5:04d}",
        550_017_000 + n,
        f"QXn{number:04d}",
    )


def traces_in(log: str) -> dict[str, list[str]]:
    """Find traces of the values in a text, by column; a number counts where it stands by itself."""
    log = BAND.sub("", log)
    found = {name: re.findall(rf"(?<![\w.])(?:{pattern})(?![\w])", log) for name, pattern in TRACES.items()}
    return {name: sorted({str(one) for one in some})[:9] for name, some in found.items() if some}


@pytest.fixture(scope="module")
def loud_server() -> Iterator[PostgresServer]:
    """A server that logs whatever it is told, parameters in full."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server binaries")
    with start(binaries, LOUD) as server:
        yield server


ROLES: dict[str, Any] = {
    "ssn": "identifier",
    "sex": "quasi-identifier",
    "disease": "sensitive",
    "pay": "sensitive",
    "note": "insensitive",
}
QUASI = ("small", "age", "zero", "seen", "income", "weight", "born", "at", "town")
STEPS: dict[str, dict[str, Any]] = {
    "small": {"intervals": [10, 100]},
    "age": {"intervals": [10_000, 100_000]},
    "zero": {"intervals": [10, 100_000]},
    "seen": {"intervals": [10_000, 100_000]},
    "income": {"intervals": [10, 100]},
    "weight": {"intervals": [10, 100]},
    "born": {"date": ["month", "year", "decade"]},
    "at": {"date": ["month", "year", "decade"]},
    "town": {"mask": "right"},
    "sex": {},
}
MODELS = [
    {"model": "k-anonymity", "k": 4},
    {"model": "distinct-l-diversity", "attribute": "disease", "l": 2},
    {"model": "variance-diversity", "attribute": "pay", "v": 0.1},
    {"model": "t-closeness", "attribute": "disease", "distance": "equal", "t": 0.9},
]
PLAIN = {name: {"role": "quasi-identifier"} for name in QUASI}
SHOWS = {"age": {"show": "mean"}, "income": {"show": "bounds"}}
TREES = {name: one | SHOWS.get(name, {}) for name, one in PLAIN.items()}
LEVELS = {name: {"role": "quasi-identifier", "hierarchy": STEPS[name] or "suppress"} for name in STEPS}
LIMITED = ("small", "age", "seen", "income", "weight")
QUANTILES = {"bottom": {"quantile": 0.05}, "top": {"quantile": 0.9}}
CODED = LEVELS | {name: {"role": "quasi-identifier", "hierarchy": {"csv": f"{name}.csv"}} for name in ("age", "town")}
ALGORITHMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mondrian": (TREES, {}),
    "cuts": (PLAIN, {"ranges": "cuts"}),
    "rothko-t": (PLAIN, {"algorithm": {"name": "rothko-t"}}),
    "rothko-s": (PLAIN, {"algorithm": {"name": "rothko-s", "sample": 60, "exact_below": 20}}),
    "limits": (TREES | {name: TREES[name] | QUANTILES for name in LIMITED}, {}),
    "limits-of-levels": (
        LEVELS | {name: LEVELS[name] | QUANTILES for name in LIMITED},
        {"algorithm": {"name": "optimal"}, "suppression": 0.2},
    ),
    "csv": (CODED, {"algorithm": {"name": "datafly"}, "suppression": 0.5}),
    "csv-of-trees": (CODED, {}),
    "optimal": (LEVELS, {"algorithm": {"name": "optimal"}, "suppression": 0.2}),
    "top-down": (LEVELS, {"algorithm": {"name": "top-down"}}),
}
LATTICES = ("optimal", "limits-of-levels", "csv")
FROZEN = ("mondrian", "limits", "csv-of-trees", "limits-of-levels", "optimal", "top-down")  # procedures of every form
APPLIED = ("cuts", "csv", "limits")
SWEPT = ("mondrian", "optimal")  # a sweep searches as a run does


def write(directory: Path, name: str, url: str, **changes: Any) -> Path:
    attributes, more = ALGORITHMS[name]
    roles = {key: {"role": role} for key, role in ROLES.items()}
    policy: dict[str, Any] = {
        "source": {"url": url, "table": "people"},
        "release": {"table": f"released_{name.replace('-', '_')}"},
        "attributes": roles | attributes,
        "privacy": MODELS,
    }
    for column in ("age", "town"):
        values = sorted({str(row(number)[list(COLUMNS).index(column)]) for number in range(ROWS)})
        lines = [f"{value};{value[:-2]}xx;*" for value in values]
        (directory / f"{column}.csv").write_text("\n".join(lines), encoding="utf-8")
    path = directory / f"{name}.yml"
    path.write_text(json.dumps(policy | more | changes), encoding="utf-8")
    return path


def carried_out(*arguments: object) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, (arguments, result.output)
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_log_holds_no_value(loud_server: PostgresServer, tmp_path: Path, name: str) -> None:
    database = f"db_{name.replace('-', '_')}"
    loud_server.create(database)
    url = loud_server.url(database)
    with open_database(url) as opened:
        opened.create(COLUMNS, [row(number) for number in range(ROWS)], name="people")
    begin = mark(loud_server)
    policy = write(tmp_path, name, url)
    where = ("--policy", policy)
    if name in LATTICES:
        carried_out("lattice", policy)
    if name in SWEPT:
        carried_out("sweep", policy, "--k", "4,8")
    run = carried_out("run", policy)["run"]
    carried_out("verify", policy)
    if name in FROZEN:
        carried_out("freeze", run, "--name", "nightly", *where)
        carried_out("job", "run", "nightly", *where)
    if name in APPLIED:
        carried_out("apply", run, "--to", "people", "--out", "again", *where)
        carried_out("run", policy, "--replace")
    written = since(loud_server, begin)
    assert "CREATE TABLE" in written
    assert traces_in(written) == {}
    assert traces_in("".join(map(str, row(5)))), "values are recognized"


def test_commands_before_a_run_log_no_value(loud_server: PostgresServer, tmp_path: Path) -> None:
    loud_server.create("before")
    url = loud_server.url("before")
    with open_database(url) as opened:
        opened.create(COLUMNS, [row(number) for number in range(ROWS)], name="people")
    begin = mark(loud_server)
    assert call("init", url, "people").exit_code == 0
    for name in ALGORITHMS:
        carried_out("check", write(tmp_path, name, url))
    written = since(loud_server, begin)
    assert "people" in written
    assert traces_in(written) == {}


def test_the_log_of_a_private_run_says_the_same_of_every_table(
    loud_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With draws that depend on no table, whatever is left, the log too, depends on none."""
    loud_server.create("private")
    left, logs = [], []
    with open_database(loud_server.url("private")) as opened:
        ((own,),) = opened.sql("SELECT pg_backend_pid()")
        for rows in (FEW, MANY):
            begin = mark(loud_server)
            left.append(left_behind(opened, rows, tmp_path, monkeypatch, caplog).splitlines())
            logs.append(entries(since(loud_server, begin), own))
    assert left[0] == left[1]
    assert set(logs[0]) ^ set(logs[1]) == set()
    assert logs[0] == logs[1]
    assert any("GROUP BY" in line for line in logs[0]), "the log shows how cells are counted"


def mark(server: PostgresServer) -> int:
    """Return the length of the server's log, in bytes."""
    return (server.directory / "log").stat().st_size


_OF_TIME = r'duration:|BEGIN|COMMIT|"live"|\$1 = .\{"phase"'


def entries(log: str, own: int) -> list[str]:
    """List the entries of a log that are not of the test's own process, without times and numbers of processes.

    Signs of life, which a thread gives every half second, are left out with their transactions and parameters: the
    phase, and seconds.
    """
    parts = re.split(r"^(?=\d{4}-\d\d-\d\d )", log, flags=re.MULTILINE)
    kept = [one for one in parts if f"[{own}]" not in one and not re.search(_OF_TIME, one)]
    return sorted(nameless(re.sub(r" \[\d+\]", "", one, count=1)) for one in kept)


def since(server: PostgresServer, begin: int) -> str:
    """Read the server's log from an earlier length on."""
    with (server.directory / "log").open(encoding="utf-8", errors="replace") as file:
        file.seek(begin)
        return file.read()


NUMBERS = (
    17,
    -17,
    2**31 - 1,
    -(2**31),
    2**31,
    2**63 - 1,
    2**63,
    -(2**100),
    0.1,
    -0.0,
    -1.5e-300,
    770_012_345,
    Decimal("-770012.50"),
)


def test_numbers_keep_their_values_and_types(loud_server: PostgresServer) -> None:
    with PostgresEngine.connect(loud_server.url("postgres")) as engine:
        for number in NUMBERS:
            shown = f"CAST('{number!r}' AS FLOAT8)" if isinstance(number, float) else str(number)
            plain = engine.fetch(Statement("plain", f"SELECT v, pg_typeof(v)::TEXT FROM (SELECT ({shown}) AS v) AS x"))
            ((value, type_),) = plain
            found = engine.fetch(Statement("withheld", f"SELECT v, pg_typeof(v)::TEXT FROM ({withheld(number)}) AS x"))
            assert str(found) == str([(value, type_)]), number


def withheld(*numbers: float | Decimal) -> str:
    return "SELECT " + ", ".join(f"({RedactedValue(number)}) AS v" for number in numbers)


def test_numbers_outlive_transactions_that_are_undone(loud_server: PostgresServer) -> None:
    with PostgresEngine.connect(loud_server.url("postgres")) as engine:
        for number in (1, 2, 1):
            with contextlib.suppress(EngineError), engine.transaction():
                assert engine.fetch(Statement("before", withheld(number))) == [(number,)]
                engine.execute(Statement("wrong", "SELECT 1 / 0"))
        engine.fetch(Statement("outside", withheld(7)))
        with engine.transaction():
            assert engine.fetch(Statement("twice", withheld(1, 7, 1, 8))) == [(1, 7, 1, 8)]
        assert engine.fetch(Statement("after", withheld(8, 7, 3))) == [(8, 7, 3)]


@pytest.mark.parametrize(
    ("text", "state", "error"),
    [
        ("SELECT CAST('QXvalue' AS DATE)", "22007", EngineError),
        ("SELECT 'QXvalue' FROM nowhere", "42P01", EngineError),
        ("SELECT pg_sleep(9), 'QXvalue'", "statement timeout", EngineError),
        ("SELECT 'QXvalue' FROM secrets", "permission denied for table secrets", AccessError),
    ],
)
def test_what_fails_is_not_in_the_log(loud_server: PostgresServer, text: str, state: str, error: type) -> None:
    loud_server.run("DROP TABLE IF EXISTS secrets; CREATE TABLE secrets (i INTEGER)")
    with psycopg.connect(loud_server.url("postgres"), autocommit=True) as connection:  # whose last session is to end
        while connection.execute("SELECT 1 FROM pg_stat_activity WHERE usename = 'stranger'").fetchone():
            time.sleep(0.01)
    loud_server.run("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    begin = mark(loud_server)
    url = loud_server.url("postgres", user="stranger")
    with (
        PostgresEngine.connect(url, EngineOptions(statement_timeout=0.3)) as engine,
        pytest.raises(error, match=state),
    ):
        engine.execute_privately(Statement("secret", text))
    log = since(loud_server, begin)
    assert "ERROR" in log
    assert "QXvalue" not in log


def test_parameters_are_logged_unless_the_server_says_otherwise(loud_server: PostgresServer) -> None:
    """Servers log bound parameters: for that reason no value of the data is bound to a statement."""
    begin = mark(loud_server)
    with psycopg.connect(loud_server.url("postgres"), autocommit=True) as connection:
        connection.execute("SELECT %s", ["QXbound"])
        connection.execute("SET log_parameter_max_length = 0")
        connection.execute("SELECT %s", ["QXhidden"])
    log = since(loud_server, begin)
    assert "QXbound" in log
    assert "QXhidden" not in log
