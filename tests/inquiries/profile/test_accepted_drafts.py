"""Drafts of odd tables, on both engines: a check accepts them as they stand, or their heads say why it does not."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import sqlanon.policy.loading as loading
from sqlanon.api.calls import check_policy, draft
from sqlanon.engines import connect
from sqlanon.errors import AccessError, PolicyError, ProtectionError
from sqlanon.inquiries.profile.draft import Draft
from sqlanon.inquiries.profile.profiling import COLUMNS_A_STATEMENT as MEASURED_A_STATEMENT
from sqlanon.inquiries.profile.profiling import profile
from sqlanon.inquiries.risk.identifiers import COLUMNS_A_STATEMENT
from sqlanon.plan.checks import MAX_QUASI_IDENTIFIERS
from sqlanon.policy import Role
from sqlanon.policy.loading import parse_policy
from sqlanon.sql import Relation
from tests.cli.support import execute
from tests.random_cases import random_cases
from tests.run_support import OPTIONS, quoted, run

pytestmark = pytest.mark.slow

HEAD = "`sqlanon check` REFUSES THIS DRAFT AS IT STANDS"
NAMES = (
    *("age", "salary", "id", "patient_id", "name", "email", "city", "notes", "A", "diagnosis", "day", "flag", "key"),
    *("a b", "50%", "{{ x }}", "select", "x\ny", "ä", "no"),
)
TYPES = {  # SQL of a value by the number of its row
    "INTEGER": "{n}",
    "BIGINT": "CAST({n} AS BIGINT) * 1000000000",
    "DECIMAL(12,3)": "{n} / 4.0",
    "DOUBLE PRECISION": "{n} * 0.1",
    "BOOLEAN": "{n} % 2 = 0",
    "VARCHAR": "'v' || {n}",
    "DATE": "DATE '2000-01-01' + CAST({n} AS INTEGER)",
    "TIMESTAMP": "TIMESTAMP '2000-01-01 00:00:00' + {n} * INTERVAL '1' HOUR",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP '2000-01-01 00:00:00' + {n} * INTERVAL '1' HOUR",
    "TIME": "TIME '00:00:00' + {n} * INTERVAL '1' MINUTE",
    "UUID": "CAST(lpad(CAST({n} AS VARCHAR), 32, '0') AS UUID)",
    "INTERVAL": "{n} * INTERVAL '1' HOUR",
    "INTEGER[]": None,
    "JSON": "CAST('{{\"a\": ' || {n} || '}}' AS JSON)",
}
OWN = {
    "duckdb": {
        "BLOB": "CAST('v' || {n} AS BLOB)",
        "HUGEINT": "{n}",
        "UTINYINT": "{n} % 250",
        "STRUCT(a INTEGER)": "{{'a': {n}}}",
        "MAP(VARCHAR, INTEGER)": "MAP {{'a': {n}}}",
        "ENUM('v0', 'v1')": "'v' || {n} % 2",
        "BIT": "CAST('1' || {n} % 2 AS BIT)",
    },
    "postgres": {
        "JSONB": "CAST('{{\"a\": ' || {n} || '}}' AS JSONB)",
        "BYTEA": "CAST('v' || {n} AS BYTEA)",
        "INET": "CAST('10.0.0.' || {n} % 250 AS INET)",
        "INT4RANGE": "int4range(CAST({n} AS INTEGER), CAST({n} + 2 AS INTEGER))",
        "MONEY": "CAST({n} AS MONEY)",
        "CHAR(9)": "'v' || {n}",
        "XML": "CAST('<a>' || {n} || '</a>' AS XML)",
        "POINT": "point({n}, 1)",
        "NUMERIC": "{n} * 1.5",
    },
}
VALUES = {  # the number that a row's value is made of
    "unique": "i",
    "constant": "7",
    "few": "i % 3",
    "nearly unique": "greatest(i, 2)",
    "paired": "(i - i % 2)",
    "none": None,
    "mostly none": "CASE WHEN i % 5 = 0 THEN i END",
}
_numbers = itertools.count()


@dataclass(frozen=True)
class OddTable:
    rows: int
    columns: tuple[tuple[str, str, str], ...]
    """The name of each, its type, and its values."""

    def create(self, engine: str, name: str) -> str:
        known = TYPES | OWN[engine]
        shown = ", ".join(
            f"CAST({_value(engine, known[kind], values)} AS {kind}) AS {quoted(column)}"
            for column, kind, values in self.columns
        )
        return f"CREATE TABLE {name} AS SELECT {shown} FROM generate_series(1, {self.rows}) AS n(i)"


def _value(engine: str, expression: str | None, values: str) -> str:
    number = VALUES[values]
    if number is None:
        return "NULL"
    if expression is None:
        return f"[{number}, 1]" if engine == "duckdb" else f"ARRAY[{number}, 1]"
    made = expression.format(n=f"({number})")
    return f"CASE WHEN {number} IS NOT NULL THEN {made} END"


def odd_tables(engine: str) -> st.SearchStrategy[OddTable]:
    kinds = st.sampled_from(list(TYPES | OWN[engine]))
    columns = st.lists(
        st.tuples(st.sampled_from(NAMES), kinds, st.sampled_from(list(VALUES))),
        min_size=1,
        max_size=7,
        unique_by=lambda one: one[0].lower(),
    )
    return st.builds(OddTable, st.sampled_from([0, 1, 2, 3, 7, 40, 40]), columns.map(tuple))


def require_kept_promise(found: Draft, refused: bool) -> None:
    """The head tells of a refusal, and of nothing else."""
    assert (HEAD in found.text) is refused, found.text
    assert bool(found.refusals) is refused


def accepts(text: str, directory: Path | None = None) -> bool:
    """Tell whether a check accepts a draft; a run of one that it accepts is not refused then."""
    policy = parse_policy(text, directory)
    try:
        check_policy(policy, options=OPTIONS)
    except (PolicyError, AccessError):
        return False
    try:
        result = run(policy, options=OPTIONS)
    except ProtectionError:
        return True
    assert result.published
    return True


@pytest.mark.either_engine
def test_a_draft_is_accepted_or_says_why_not(database_url: str, engine_name: str) -> None:
    def test(table: OddTable) -> None:
        name = f"t{next(_numbers)}"
        execute(database_url, table.create(engine_name, name))
        found = draft(database_url, name, OPTIONS)
        require_kept_promise(found, refused=not accepts(found.text))

    random_cases(25, odd_tables(engine_name))(test)()


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_drafts_of_files_keep_the_same_promise(tmp_path: Path, ending: str) -> None:
    def test(table: OddTable) -> None:
        name, url = f"t{next(_numbers)}", f"duckdb:///{tmp_path}/files.duckdb"
        execute(url, table.create("duckdb", name), f"COPY {name} TO '{tmp_path}/{name}.{ending}'")
        if ending == "json" and table.rows == 0:
            with pytest.raises(PolicyError, match="holds no objects with keys"):  # so that nobody knows its columns
                draft(None, str(tmp_path / f"{name}.{ending}"), OPTIONS, relative_to=tmp_path, trying=False)
            return
        found = draft(None, str(tmp_path / f"{name}.{ending}"), OPTIONS, relative_to=tmp_path, trying=False)
        require_kept_promise(found, refused=not accepts(found.text, tmp_path))

    random_cases(8, odd_tables("duckdb"))(test)()


@pytest.mark.either_engine
def test_one_row_is_not_released_as_it_is(database_url: str) -> None:
    execute(database_url, "CREATE TABLE t AS SELECT 41 AS age, 'x' AS city, 7 AS ward")
    found = draft(database_url, "t", OPTIONS)
    assert parse_policy(found.text).privacy[0].k == 2
    require_kept_promise(found, refused=not accepts(found.text))
    assert "k is 2, but the table holds one row" in found.text


def test_a_header_alone_is_no_proof_of_harmlessness(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,diagnosis,ward,phone\n")
    found = draft(None, str(tmp_path / "people.csv"), trying=False)
    roles = {name: proposal.role for name, proposal in found.profile.proposals.items()}
    assert roles == {
        "age": Role.QUASI_IDENTIFIER,
        "diagnosis": Role.OMIT,
        "ward": Role.OMIT,
        "phone": Role.IDENTIFIER,
    }
    assert "holds no rows" in "".join(found.refusals)


@pytest.mark.either_engine
@pytest.mark.parametrize("many", [MAX_QUASI_IDENTIFIERS, 100, 300])
def test_no_more_columns_are_generalized_than_can_be_searched(database_url: str, many: int) -> None:
    columns = ", ".join(f"i % {2 + n % 9} AS c{n}" for n in range(many - 1))
    execute(database_url, f"CREATE TABLE t AS SELECT {columns}, i % 40 AS age FROM generate_series(1, 60) AS n(i)")
    found = draft(database_url, "t", OPTIONS, trying=False)
    assert len(found.profile.named(Role.QUASI_IDENTIFIER)) == MAX_QUASI_IDENTIFIERS
    assert len(found.profile.named(Role.OMIT)) == many - MAX_QUASI_IDENTIFIERS
    assert found.profile.proposals["age"].role is Role.QUASI_IDENTIFIER  # by its name
    check_policy(parse_policy(found.text), options=OPTIONS)
    require_kept_promise(found, refused=False)


@pytest.mark.either_engine
def test_a_kept_column_that_singles_out_says_so(database_url: str) -> None:
    execute(
        database_url,
        "CREATE TABLE t AS SELECT i % 40 AS age, CASE WHEN i <= 77 THEN 1000 + i ELSE 0 END AS salary, i % 2 AS vote"
        " FROM generate_series(1, 100) AS n(i)",
    )
    lines = {line.split(":")[0].strip(): line for line in draft(database_url, "t", trying=False).text.splitlines()}
    assert "it is released exactly, and its values single out 77.0 % of the rows" in lines["salary"]
    assert "single out" not in lines["age"] + lines["vote"]


def test_a_role_that_may_not_write_there_is_told(
    postgres_url: str, postgres_connection: Any, restricted_role: tuple[str, str]
) -> None:
    role, url = restricted_role
    rows = "SELECT i % 9 AS age FROM generate_series(1, 90) AS n(i)"
    execute(postgres_url, "CREATE SCHEMA clinic", f"CREATE TABLE clinic.t AS {rows}")
    postgres_connection.execute(f"GRANT USAGE ON SCHEMA clinic TO {role}")
    postgres_connection.execute(f"GRANT SELECT ON clinic.t TO {role}")
    found = draft(url, "clinic.t", trying=False)
    assert HEAD in found.text
    assert "clinic" in found.refusals[0]


def test_documents_beside_a_key_do_not_stop_the_check(postgres_url: str) -> None:
    """Types that cannot be generalized name nobody."""
    execute(
        postgres_url,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, age INTEGER, doc JSONB, tags TEXT[], host INET, scan BYTEA)",
        "INSERT INTO t SELECT i, i % 9, '{}', '{a}', '::1', '\\x00' FROM generate_series(1, 90) AS n(i)",
    )
    found = draft(postgres_url, "t", OPTIONS)
    assert {one.name for one in found.profile.named(Role.OMIT)} == {"doc", "tags", "host", "scan"}
    require_kept_promise(found, refused=not accepts(found.text))
    assert not found.refusals


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of policies that are parsed."""
    texts: list[str] = []
    read = loading.read_document
    monkeypatch.setattr(loading, "read_document", lambda text: texts.append(text) or read(text))
    return texts


@pytest.mark.parametrize("columns", [3, 30])
def test_a_draft_is_parsed_once_whatever_its_columns(tmp_path: Path, parsed: list[str], columns: int) -> None:
    url = f"duckdb:///{tmp_path}/wide.duckdb"
    listed = ", ".join(f"i % {3 + n} AS c{n}" for n in range(columns))
    execute(url, f"CREATE TABLE t AS SELECT {listed} FROM range(60) AS n(i)")
    assert draft(url, "t").costs is not None
    assert len(parsed) == 1


def test_text_columns_are_looked_at_in_parts(tmp_path: Path) -> None:
    """No statement grows with the columns: engines take a square of their number to plan one."""
    url = f"duckdb:///{tmp_path}/wide.duckdb"
    execute(url, "CREATE TABLE t AS SELECT " + ", ".join(f"'x{n}' AS c{n}" for n in range(250)))
    sent: list[tuple[str, int]] = []
    with connect(url, OPTIONS) as engine:
        relation = engine.resolve(Relation("t"))
        assert relation is not None
        engine.listener = lambda statement, _seconds, _rows: sent.append((statement.name, len(statement.text)))
        profile(engine, relation)
    names = [name for name, _ in sent]
    assert names.count("engines/find_lax_columns") == 3
    assert names.count("inquiries/risk/count_patterns") == 250 // COLUMNS_A_STATEMENT
    assert names.count("inquiries/profile/measure_columns") == -(-250 // MEASURED_A_STATEMENT)
