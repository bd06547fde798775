"""Every type of each engine into every kind of release: it is released as it is, and verified afterwards."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb
import psycopg
import pytest

from tests.cli.support import call
from tests.postgres_server import PostgresServer
from tests.typed_tables import (
    DUCKDB,
    DUCKDB_TYPES,
    NOT_IN_PARQUET,
    ODD_SETTINGS,
    OTHERWISE,
    POSTGRES,
    POSTGRES_OTHERWISE,
    POSTGRES_TYPES,
    ROWS,
    otherwise,
)

pytestmark = pytest.mark.slow

Columns = Mapping[str, tuple[str, str]]
FILES = ("csv", "csv.gz", "parquet")


def create(columns: Columns, rows: str) -> list[str]:
    """The statements that make the table: two quasi-identifiers, and the columns."""
    listed = ", ".join(f"{name} {type_}" for name, (type_, _) in columns.items())
    values = ", ".join(value for _, value in columns.values())
    city = "CASE WHEN i % 2 = 0 THEN 'Rome' ELSE 'Oslo' END"
    return [
        "DROP TABLE IF EXISTS typed",
        f"CREATE TABLE typed (age int, city text, {listed})",
        f"INSERT INTO typed SELECT 20 + i % 4, {city}, {values} FROM {rows}",
    ]


def fill_postgres(url: str, columns: Columns = POSTGRES) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in create(columns, f"generate_series(0, {ROWS - 1}) AS g(i)"):
            connection.execute(statement.encode())
    return url


def fill_duckdb(path: Path, columns: Columns = DUCKDB) -> str:
    with duckdb.connect(str(path)) as connection:
        for statement in ("SET TimeZone = 'UTC'", *DUCKDB_TYPES, *create(columns, f"range({ROWS}) AS g(i)")):
            connection.execute(statement)
    return f"duckdb:///{path}"


@pytest.fixture(scope="module")
def postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """A database with the types and the table, and a role to which it writes all values otherwise."""
    with postgres_server.temporary("types") as name:
        url = postgres_server.url(name)
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in POSTGRES_TYPES:
                connection.execute(statement.encode())
            connection.execute("CREATE ROLE odd_types LOGIN SUPERUSER")
            for setting, value in ODD_SETTINGS.items():
                connection.execute(f"ALTER ROLE odd_types SET {setting} = '{value}'".encode())
        yield fill_postgres(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP OWNED BY odd_types")
            connection.execute("DROP ROLE odd_types")


def release_of(target: str, directory: Path, other: str) -> str:
    if target in FILES:
        return f"{{file: {directory}/r.{target}}}"
    if target == "same":
        return "{table: typed_r}"
    if target == "duckdb":
        duckdb.connect(str(directory / "out.duckdb")).close()
        return f'{{url: "duckdb:///{directory}/out.duckdb", table: typed_r}}'
    return f'{{url: "{other}", table: carried_r}}'


def write(
    directory: Path, source: str, release: str, columns: Sequence[str], as_text: Sequence[str] = (), qi: str = ""
) -> Path:
    kept = "".join(f"  {c}: {{role: insensitive{', as: text' if c in as_text else ''}}}\n" for c in columns)
    policy = directory / "policy.yml"
    policy.write_text(
        f'source: {{url: "{source}", table: typed}}\nrelease: {release}\n'
        f'catalog: {{url: "duckdb:///{directory}/catalog.duckdb"}}\n'
        f"attributes:\n  age: {{role: quasi-identifier{qi}}}\n  city: {{role: quasi-identifier}}\n{kept}"
        "privacy: [{model: k-anonymity, k: 2}]\n"
    )
    return policy


def release_and_verify(policy: Path) -> None:
    """Run, verify, and verify by the record: all is well."""
    done = call("run", policy, "--json", "--replace")
    assert done.exit_code == 0, done.output
    verified = call("verify", policy)
    assert verified.exit_code == 0, verified.output
    record = policy.with_name("record.json")
    assert call("record", json.loads(done.stdout)["run"], "--policy", policy, "-o", record).exit_code == 0
    checked = call("verify", policy, "--record", record)
    assert checked.exit_code == 0, checked.output


@pytest.mark.parametrize(
    ("target", "user"),
    [
        *((target, "odd_types") for target in ("same", "csv", "parquet", "duckdb")),
        ("csv", "postgres"),
        ("csv.gz", "postgres"),
    ],
)
def test_every_type_of_postgres(postgres: str, tmp_path: Path, target: str, user: str) -> None:
    url = postgres.replace("//postgres@", f"//{user}@")
    release_and_verify(write(tmp_path, url, release_of(target, tmp_path, ""), list(POSTGRES)))


@pytest.mark.parametrize("target", ["same", "csv", "parquet", "duckdb", "postgres"])
def test_every_type_of_duckdb(postgres: str, tmp_path: Path, target: str) -> None:
    source = fill_duckdb(tmp_path / "source.duckdb")
    as_text = NOT_IN_PARQUET if target == "parquet" else ()
    release_and_verify(write(tmp_path, source, release_of(target, tmp_path, postgres), list(DUCKDB), as_text))


NO_QUASI_IDENTIFIERS = (
    *("c_zoned", "c_interval", "c_jsonb", "c_json", "c_numbers", "c_texts", "c_matrix", "c_ids", "c_inet", "c_subnet"),
    *("c_cidr", "c_mac", "c_range", "c_numbers_from", "c_since", "c_ranges", "c_money", "c_bit", "c_bits", "c_xml"),
    *("c_words", "c_query", "c_point", "c_box", "c_object", "c_pair", "c_bytes", "c_letters", "c_loose", "c_letter"),
    *("c_oid", "c_class", "c_place", "c_path"),
)
"""Columns of PostgreSQL's types that can't be generalized."""


@pytest.fixture(scope="module")
def domains(postgres: str) -> str:
    """The table again, each column in a domain over a domain over its type."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        for name, (type_, _) in POSTGRES.items():
            connection.execute(f"CREATE DOMAIN inner_{name} AS {type_}".encode())
            connection.execute(f"CREATE DOMAIN outer_{name} AS inner_{name}".encode())
        columns = {name: (f"outer_{name}", f"({value})::{type_}") for name, (type_, value) in POSTGRES.items()}
        for statement in create(columns, f"generate_series(0, {ROWS - 1}) AS g(i)"):
            connection.execute(statement.replace("typed", "wrapped").encode())
    return postgres


def write_roles(directory: Path, url: str, roles: Mapping[str, str], ending: str = "", target: str = "csv") -> Path:
    """A policy of the table of domains, without the columns that have no role."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(b"DROP VIEW IF EXISTS few_wrapped")
        connection.execute(f"CREATE VIEW few_wrapped AS SELECT {', '.join(roles)} FROM wrapped".encode())
    policy = directory / "policy.yml"
    policy.write_text(
        f'source: {{url: "{url}", table: few_wrapped}}\nrelease: {release_of(target, directory, "")}\n'
        f'catalog: {{url: "duckdb:///{directory}/catalog.duckdb"}}\nattributes:\n'
        + "".join(f"  {name}: {{role: {role}}}\n" for name, role in roles.items())
        + f"privacy: [{{model: k-anonymity, k: 2}}]\n{ending}"
    )
    return policy


@pytest.mark.parametrize("role", ["insensitive", "sensitive"])
def test_every_domain_is_kept(domains: str, tmp_path: Path, role: str) -> None:
    roles = {"age": "quasi-identifier", "city": "quasi-identifier", **dict.fromkeys(POSTGRES, role)}
    release_and_verify(write_roles(tmp_path, domains, roles, target="same" if role == "sensitive" else "parquet"))


@pytest.mark.parametrize(
    ("algorithm", "target"),
    [("mondrian", "same"), ("rothko-t", "csv"), ("microaggregation", "csv"), ("local-suppression", "csv")],
)
def test_domains_are_generalized(domains: str, tmp_path: Path, algorithm: str, target: str) -> None:
    names = [name for name in POSTGRES if name not in NO_QUASI_IDENTIFIERS]
    if algorithm in ("microaggregation", "local-suppression"):
        names = ["c_mood", "c_feeling", "c_positive", "c_decimal", "c_text", "c_truth", "c_uuid"]
    roles = dict.fromkeys(names, "quasi-identifier") | {"city": "insensitive"}
    release_and_verify(write_roles(tmp_path, domains, roles, f"algorithm: {{name: {algorithm}}}\n", target))


def test_domains_that_are_not_generalized_are_named(domains: str, tmp_path: Path) -> None:
    refused = call("check", write_roles(tmp_path, domains, dict.fromkeys(NO_QUASI_IDENTIFIERS, "quasi-identifier")))
    assert refused.exit_code == 2
    said = " ".join(refused.output.split())
    assert [name for name in NO_QUASI_IDENTIFIERS if f"attributes.{name}: values of type" not in said] == []


@pytest.mark.parametrize("user", ["postgres", "odd_types"])
def test_a_csv_has_the_texts_that_copy_writes(postgres: str, tmp_path: Path, user: str) -> None:
    """But for numbers of floating point and truth values, which are DuckDB's in all CSV releases."""
    url = postgres.replace("//postgres@", f"//{user}@")
    policy = write(tmp_path, url, release_of("csv", tmp_path, ""), list(POSTGRES))
    assert call("run", policy, "--replace").exit_code == 0
    with psycopg.connect(postgres) as connection:
        connection.execute("SET timezone = 'UTC'")
        with connection.cursor().copy(f"COPY typed ({', '.join(POSTGRES)}) TO STDOUT (FORMAT csv)".encode()) as copy:
            copied = b"".join(bytes(block) for block in copy).decode()
    wanted = list(csv.reader(io.StringIO(copied, newline="")))
    _, *released = csv.reader((tmp_path / "r.csv").open(newline=""))
    for place, name in enumerate(POSTGRES):
        if name not in ("c_single", "c_double", "c_truth"):
            assert sorted(row[place + 2] for row in released) == sorted(row[place] for row in wanted), name


ALTERED = ("c_uuid", "c_moment", "c_before_christ", "c_interval", "c_jsonb", "c_free")


@pytest.mark.parametrize("target", ["csv", "parquet", "duckdb"])
def test_an_altered_value_is_seen(postgres: str, tmp_path: Path, target: str) -> None:
    """The second row has the value of the first one; every other value stays."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS few")
        connection.execute(f"CREATE TABLE few AS SELECT age, city, {', '.join(ALTERED)} FROM typed".encode())
    policy = write(tmp_path, postgres, release_of(target, tmp_path, ""), ALTERED)
    policy.write_text(policy.read_text().replace("table: typed}", "table: few}"))
    release_and_verify(policy)
    place = tmp_path / ("out.duckdb" if target == "duckdb" else f"r.{target}")
    whole = place.read_bytes()
    for name in ALTERED:
        alter(place, name)
        assert call("verify", policy).exit_code == 3, name
        place.write_bytes(whole)


def alter(place: Path, name: str) -> None:
    """Give a value of a column to another row which has another one."""
    with duckdb.connect(str(place) if place.suffix == ".duckdb" else ":memory:") as connection:
        reader = f"read_csv('{place}', all_varchar = true)" if place.suffix == ".csv" else f"'{place}'"
        connection.execute(f"CREATE TABLE rows AS FROM {'typed_r' if place.suffix == '.duckdb' else reader}")
        connection.execute(
            f"UPDATE rows SET {name} = (SELECT max({name}) FROM rows) WHERE rowid = "
            f"(SELECT min(rowid) FROM rows WHERE {name} < (SELECT max({name}) FROM rows))"
        )
        if place.suffix == ".duckdb":
            connection.execute("DELETE FROM typed_r")
            connection.execute("INSERT INTO typed_r FROM rows")
            connection.execute("DROP TABLE rows")
        else:
            connection.execute(f"COPY rows TO '{place}'")


def test_values_that_a_release_lacks_are_named_or_texts(postgres: str, tmp_path: Path) -> None:
    odd: Columns = {
        "no_number": ("numeric", "CASE WHEN i % 2 = 0 THEN 'NaN'::numeric ELSE 1.5 END"),
        "digits": ("numeric", "1e30 + 1e-30"),
        "endless": ("date", "CASE WHEN i % 2 = 0 THEN 'infinity'::date ELSE '2020-01-01' END"),
        "far": ("timestamp", "timestamp '294276-12-31'"),
    }
    with psycopg.connect(postgres, autocommit=True) as connection:
        for statement in create(odd, f"generate_series(0, {ROWS - 1}) AS g(i)"):
            connection.execute(statement.replace("typed", "odd_values").encode())
    for target in ("parquet", "duckdb", "csv", "same"):
        policy = write(tmp_path, postgres, release_of(target, tmp_path, ""), list(odd))
        policy.write_text(policy.read_text().replace("table: typed}", "table: odd_values}"))
        if target in ("csv", "same"):
            release_and_verify(policy)
            continue
        refused = call("check", policy)
        named = [name for name in odd if f'"{name}"' in refused.output]
        assert (refused.exit_code, named) == (2, [name for name in odd if target == "parquet" or name != "endless"])
        policy = write(tmp_path, postgres, release_of(target, tmp_path, ""), list(odd), list(odd))
        policy.write_text(policy.read_text().replace("table: typed}", "table: odd_values}"))
        release_and_verify(policy)


def test_types_that_parquet_lacks_are_named(tmp_path: Path) -> None:
    source = fill_duckdb(tmp_path / "source.duckdb", {name: DUCKDB[name] for name in NOT_IN_PARQUET})
    refused = call("check", write(tmp_path, source, release_of("parquet", tmp_path, ""), NOT_IN_PARQUET))
    assert refused.exit_code == 2
    assert all(f'"{name}"' in refused.output for name in NOT_IN_PARQUET)


@pytest.mark.parametrize(
    ("target", "column", "said"),
    [
        ("csv", "c_uuid", "a CSV file holds texts alone"),
        ("same", "c_uuid", "the release is in the same database"),
        ("parquet", "c_text", "the column is text"),
        ("parquet", "age", "role quasi-identifier does not use"),
        ("parquet", "c_day", "judge the order of texts"),
    ],
)
def test_text_that_changes_nothing_is_refused(tmp_path: Path, target: str, column: str, said: str) -> None:
    source = fill_duckdb(tmp_path / "source.duckdb", {name: DUCKDB[name] for name in ("c_uuid", "c_text", "c_day")})
    release = release_of(target, tmp_path, "")
    qi = ", as: text" if column == "age" else ""
    policy = write(tmp_path, source, release, ["c_uuid", "c_text", "c_day"], [column], qi)
    policy.write_text(policy.read_text().replace("c_day: {role: insensitive", "c_day: {role: sensitive"))
    refused = call("check", policy)
    assert (refused.exit_code, said in " ".join(refused.output.split())) == (2, True), refused.output


def test_text_is_written_where_it_is_asked_for(postgres: str, tmp_path: Path) -> None:
    kept = ["c_jsonb", "c_interval", "c_uuid", "c_day", "c_big"]
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS few")
        connection.execute(f"CREATE TABLE few AS SELECT age, city, {', '.join(kept)} FROM typed".encode())
    policy = write(tmp_path, postgres, release_of("parquet", tmp_path, ""), kept, kept)
    policy.write_text(policy.read_text().replace("table: typed}", "table: few}"))
    release_and_verify(policy)
    types = duckdb.sql(f"DESCRIBE SELECT * FROM '{tmp_path}/r.parquet'").fetchall()
    assert {type_ for _, type_, *_ in types} == {"VARCHAR"}


@pytest.mark.parametrize("target", ["csv", "parquet", "same"])
@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_one_altered_cell_of_any_type_is_seen(postgres: str, tmp_path: Path, engine: str, target: str) -> None:
    """Columns have, each in a row of its own, a value of the twin: a release of the same rows with other values."""
    is_duckdb = engine == "duckdb"
    columns, others = (DUCKDB, OTHERWISE) if is_duckdb else (POSTGRES, POSTGRES_OTHERWISE)
    if not is_duckdb and target == "same":
        target = "duckdb"
    as_text = NOT_IN_PARQUET if is_duckdb and target == "parquet" else ()
    places = {}
    for name, of in (("twin", otherwise(columns, others)), ("whole", dict(columns))):
        (directory := tmp_path / name).mkdir()
        url = fill_duckdb(directory / "source.duckdb", of) if is_duckdb else fill_postgres(postgres, of)
        policy = write(directory, url, release_of(target, directory, ""), list(columns), as_text)
        assert call("run", policy, "-q").exit_code == 0
        places[name] = directory / {"same": "source.duckdb", "duckdb": "out.duckdb"}.get(target, f"r.{target}")
    whole = places["whole"].read_bytes()
    assert violations_of(policy) == 0
    names = list(columns)
    for first in range(0, len(names), ROWS):
        batch = names[first : first + ROWS]
        alter_cells(places["whole"], places["twin"], batch)
        assert violations_of(policy) == 2 * len(batch), batch  # rows that lack, and rows that are too many
        places["whole"].write_bytes(whole)


def violations_of(policy: Path) -> int:
    """Count the rows whose kept values `verify` finds altered."""
    verified = call("verify", policy, "--json")
    checks = json.loads(verified.stdout)["checks"]
    assert verified.exit_code == (3 if checks["values_equal"]["violations"] else 0), verified.output
    return int(checks["values_equal"]["violations"])


def alter_cells(place: Path, twin: Path, names: Sequence[str]) -> None:
    """Give each of these columns, in a row of its own, another value that the twin has there."""
    is_table = place.suffix == ".duckdb"
    with duckdb.connect(str(place) if is_table else ":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        if is_table:
            connection.execute(f"ATTACH '{twin}' AS twin (READ_ONLY)")
            table, other = "typed_r", "twin.typed_r"
        else:
            table, other = "rows", "twin_rows"
            for made, file in ((table, place), (other, twin)):
                reader = (
                    f"read_csv('{file}', all_varchar = true, allow_quoted_nulls = false)"
                    if file.suffix == ".csv"
                    else f"'{file}'"
                )
                connection.execute(f"CREATE TABLE {made} AS FROM {reader}")
        rows = [row for (row,) in connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid").fetchall()]
        for name, row in zip(names, rows, strict=False):
            connection.execute(
                f"UPDATE {table} SET {name} = (SELECT o.{name} FROM {other} AS o WHERE"
                f" CAST(o.{name} AS VARCHAR) NOT IN"
                f" (SELECT CAST({name} AS VARCHAR) FROM {table} WHERE {name} IS NOT NULL)"
                f" LIMIT 1) WHERE rowid = {row}"
            )
        if not is_table:
            connection.execute(f"COPY rows TO '{place}'")
