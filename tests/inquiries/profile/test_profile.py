"""Profiles and drafted policies, on both engines: the facts are right, and a draft loads and can be carried out."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlanon.api.calls import check_policy, draft_policy
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import dialect_of_url
from sqlanon.engines.embedded import EMBEDDED
from sqlanon.errors import PolicyError
from sqlanon.inquiries.profile.column_facts import ColumnFacts, Profile
from sqlanon.inquiries.profile.draft import propose_policy
from sqlanon.inquiries.profile.profiling import profile
from sqlanon.inquiries.profile.proposal import propose, propose_roles
from sqlanon.plan.column_names import words_of
from sqlanon.plan.plan import resolve
from sqlanon.plan.subject import NO_REPETITION
from sqlanon.policy import Hierarchy, Policy, Role
from sqlanon.policy.algorithms import own_algorithms
from sqlanon.policy.loading import parse_policy
from sqlanon.sql import Identifier, Relation, Statement
from sqlanon.support.environment import expanded

pytestmark = pytest.mark.slow

URL = "duckdb:///x.duckdb"


def sql(engine: Engine, text: str) -> None:
    engine.execute(Statement("test", text))


def make_table(engine: Engine, columns: dict[str, tuple[str, str]], rows: int, name: str = "t") -> Relation:
    """A table of columns `name: (type, expression over i)`; the relation as the engine knows it."""
    values = ", ".join(f'CAST({value} AS {kind}) AS "{column}"' for column, (kind, value) in columns.items())
    numbers = f"(SELECT CAST(g AS INTEGER) AS i FROM generate_series(1, {rows}) AS n(g)) AS s"
    sql(engine, f"CREATE TABLE {name} AS SELECT {values} FROM {numbers}")
    known = engine.resolve(Relation.parse(name))
    assert known is not None
    return known


PATIENTS = {
    "patient_id": ("INTEGER", "i"),
    "email": ("VARCHAR", "'p' || i || '@example.org'"),
    "birth_date": ("DATE", "DATE '1940-01-01' + i * 7"),
    "zipcode": ("VARCHAR", "CAST(53000 + i % 40 AS VARCHAR)"),
    "sex": ("VARCHAR", "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END"),
    "salary": ("DOUBLE PRECISION", "1000 + (i * 37) % 500"),
    "disease": ("VARCHAR", "CASE WHEN i % 10 > 0 THEN 'd' || i % 4 END"),
    "ward": ("VARCHAR", "'w' || i % 6"),
    "site": ("VARCHAR", "'main'"),
    "seen_at": ("TIMESTAMP", "TIMESTAMP '2020-01-01 00:00:00'"),
    "tags": ("INTEGER[]", "NULL"),
}


def draft(engine: Engine, found: Profile, table: str = "t") -> Policy:
    text = propose_policy(found, URL, table)
    policy = parse_policy(text)
    assert list(policy.attributes) == [column.name for column in engine.columns(found.relation)]
    return policy


def test_facts_are_counted(engine: Engine) -> None:
    found = profile(engine, make_table(engine, PATIENTS, 200))
    facts = {f.name: f for f in found.columns}
    assert (found.rows, found.exact) == (200, True)
    assert [facts["patient_id"].distinct, facts["patient_id"].unique_share] == [200, 1.0]
    assert (facts["disease"].nulls, facts["disease"].distinct, facts["disease"].unique_share) == (20, 4, 0.0)
    assert (facts["zipcode"].shortest, facts["zipcode"].longest, facts["zipcode"].all_digits) == (5, 5, True)
    assert facts["sex"].column.kind is Kind.TEXT
    assert (facts["tags"].distinct, facts["tags"].nulls, facts["tags"].longest) == (0, 200, None)


def test_roles_are_proposed(engine: Engine) -> None:
    found = profile(engine, make_table(engine, PATIENTS, 200))
    roles = {name: proposal.role.value for name, proposal in found.proposals.items()}
    assert roles == {
        "patient_id": "identifier",
        "email": "identifier",
        "birth_date": "quasi-identifier",
        "zipcode": "quasi-identifier",
        "sex": "quasi-identifier",
        "salary": "sensitive",
        "disease": "sensitive",
        "ward": "quasi-identifier",
        "site": "insensitive",
        "seen_at": "insensitive",
        "tags": "omit",
    }


def test_the_draft_is_a_policy_that_can_be_carried_out(engine: Engine) -> None:
    found = profile(engine, make_table(engine, PATIENTS, 200))
    policy = draft(engine, found)
    assert policy.attributes["zipcode"].hierarchy == Hierarchy(mask="right")
    assert policy.attributes["birth_date"].hierarchy == Hierarchy(date=("month", "year", "decade"))
    assert [(m.model, getattr(m, "attribute", None)) for m in policy.privacy] == [
        ("k-anonymity", None),
        ("distinct-l-diversity", "salary"),
        ("distinct-l-diversity", "disease"),
    ]
    assert policy.release.table == "t_released"
    plan = resolve(policy, engine)
    assert [a.name for a in plan.quasi_identifiers] == ["birth_date", "zipcode", "sex", "ward"]


def test_the_draft_says_what_was_found(engine: Engine) -> None:
    text = propose_policy(profile(engine, make_table(engine, PATIENTS, 200)), URL, "t")
    assert "200 rows, 11 columns" in text
    assert "disease: {role: sensitive}    # text, 4 distinct, 20 NULL, 0.0 % unique" in text
    assert "#   all 4: 100 %" in text
    assert "about" not in text
    for value in ("@example.org", "53001", "'d1'", "1940"):
        assert value not in text


def _unique_share(rows: list[tuple[Any, ...]]) -> float:
    counts = {row: rows.count(row) for row in rows}
    return sum(1 for count in counts.values() if count == 1) / len(rows)


@pytest.mark.parametrize("seed", range(3))
def test_shares_of_unique_rows_match_brute_force(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    rows = [tuple(chance.choice([None, *range(size)]) for size in (1, 4, 9)) for _ in range(40)]
    sql(engine, "CREATE TABLE t (city INTEGER, age INTEGER, height INTEGER)")
    texts = [f"({', '.join('NULL' if v is None else str(v) for v in row)})" for row in rows]
    sql(engine, f"INSERT INTO t VALUES {', '.join(texts)}")
    relation = engine.resolve(Relation("t"))
    assert relation is not None
    found = profile(engine, relation)
    names = ["city", "age", "height"]
    assert [f.unique_share for f in found.columns] == [
        _unique_share([row[i : i + 1] for row in rows]) for i in range(3)
    ]
    assert [f.distinct for f in found.columns] == [len({row[i] for row in rows} - {None}) for i in range(3)]
    expected = {
        (names[i], names[j]): _unique_share([(row[i], row[j]) for row in rows])
        for i, j in itertools.combinations(range(3), 2)
    }
    assert {pair.columns: pair.unique_share for pair in found.pairs} == expected
    assert found.combination is not None
    assert found.combination.unique_share == _unique_share(rows)


def test_large_tables_are_estimated_from_a_part_of_the_values(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlanon.inquiries.profile.profiling.SMALL_DOMAIN", 500)
    columns = {
        "patient_id": ("INTEGER", "i"),
        "age": ("INTEGER", "i % 60"),
        "height": ("INTEGER", "CASE WHEN i <= 8000 THEN 1 ELSE i END"),
        "disease": ("VARCHAR", "'d' || i % 3"),
        "site": ("VARCHAR", "'main'"),
    }
    found = profile(engine, make_table(engine, columns, 16000), exact_rows=2000)
    facts = {f.name: f for f in found.columns}
    assert not found.exact
    assert (facts["age"].distinct, facts["age"].exact) == (60, True)
    assert (facts["site"].distinct, facts["disease"].distinct) == (1, 3)
    assert facts["patient_id"].distinct == pytest.approx(16000, rel=0.1)
    assert facts["patient_id"].unique_share == pytest.approx(1, abs=0.1)
    assert facts["height"].unique_share == pytest.approx(0.5, abs=0.05)
    assert found.proposals["site"].role is Role.INSENSITIVE
    assert "about" in propose_policy(found, URL, "t")
    assert draft(engine, found).attributes["patient_id"].role is Role.IDENTIFIER


def test_many_columns_take_a_bounded_number_of_statements(engine: Engine) -> None:
    columns = {f"c{n}": ("INTEGER", f"i % {n + 2}") for n in range(30)}
    relation = make_table(engine, columns, 50)
    statements: list[str] = []
    engine.listener = lambda statement, _seconds, _rows: statements.append(statement.name)
    found = profile(engine, relation)
    engine.listener = None
    assert len(found.pairs) == 45
    assert statements.count("inquiries/profile/measure_columns") == 2
    assert statements.count("inquiries/profile/measure_uniqueness") == 2 + 45 + 1
    assert max(statements.count(name) for name in statements if name != "inquiries/profile/measure_uniqueness") <= 4


def test_a_draft_in_python_keeps_the_variables_of_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"duckdb:///{tmp_path}/people.duckdb"
    with connect(url, create=True) as engine:
        make_table(engine, PATIENTS, 30)
    (tmp_path / "people.csv").write_text("age,sex\n30,M\n41,F\n")
    monkeypatch.setenv("PEOPLE_PLACE", str(tmp_path))
    for place, table in (("duckdb:///${PEOPLE_PLACE}/people.duckdb", "t"), (None, "${PEOPLE_PLACE}/people.csv")):
        text = draft_policy(place, table, trying=False)
        assert f'"{place or table}"' in text or f": {place or table}" in text
        assert check_policy(parse_policy(text)).rows in (2, 30)
    monkeypatch.delenv("PEOPLE_PLACE")
    with pytest.raises(PolicyError, match="PEOPLE_PLACE"):
        draft_policy(place, table, trying=False)


def test_columns_of_one_row_need_no_statement_of_their_own(engine: Engine) -> None:
    relation = make_table(engine, {f"c{n}": ("INTEGER", "1") for n in range(300)}, 1)
    statements: list[str] = []
    engine.listener = lambda statement, _seconds, _rows: statements.append(statement.name)
    found = profile(engine, relation)
    engine.listener = None
    assert {one.unique_share for one in found.columns} == {1.0}
    assert len(statements) < 300


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_columns_that_follow_from_their_counts_are_measured_as_others(engine: Engine, rows: int) -> None:
    """Values that are all different or all the same, with and without NULL: against the rows themselves."""
    columns = {
        "different": [*range(rows)],
        "same": [5] * rows,
        "nothing": [None] * rows,
        "one lacks": [None, *range(1, rows)],
        "same, one lacks": [None, *[5] * (rows - 1)],
        "two lack": [None, None, *range(rows)][:rows],
        "pairs": [place // 2 for place in range(rows)],
    }
    names = [Identifier(name) for name in columns]
    sql(engine, "DROP TABLE IF EXISTS t")
    sql(engine, f"CREATE TABLE t ({', '.join(f'{name} INTEGER' for name in names)})")
    engine.load(Relation("t"), list(columns), list(zip(*columns.values(), strict=True)))
    for one in profile(engine, Relation("t")).columns:
        counts = Counter(columns[one.name])
        assert one.unique_share == sum(n == 1 for n in counts.values()) / rows, one.name
        assert one.distinct == len(counts.keys() - {None}), one.name


@pytest.mark.parametrize("rows", [0, 1])
def test_small_tables_have_a_draft_too(engine: Engine, rows: int) -> None:
    relation = make_table(engine, PATIENTS, 1)
    if rows == 0:
        sql(engine, "DELETE FROM t")
    found = profile(engine, relation)
    assert found.rows == rows
    assert draft(engine, found).privacy[0].model == "k-anonymity"


ODD = [
    'a"b',
    "a.b",
    "a b",
    "select",
    "50%",
    ":x",
    "{{ x }}",
    "%s",
    "ä😀",
    "a'b",
    "no",
    "12",
    "1.5",
    "~",
    "a: #b",
    "x\ny",
    " z",
]


def test_odd_names(engine: Engine) -> None:
    columns = {name.replace('"', '""'): ("INTEGER", f"i % {n + 2}") for n, name in enumerate(ODD)}
    relation = make_table(engine, columns, 30, '"Odd ""t"".x"')
    policy = draft(engine, profile(engine, relation), '"Odd ""t"".x"')
    assert Relation.parse(policy.source.table or "").name == 'Odd "t".x'
    assert Relation.parse(policy.release.table or "").name == 'Odd "t".x_released'
    assert resolve(policy.model_copy(update={"subject": "none"}), engine).rows == 30  # `no` is named like a key


def test_passwords_are_not_written(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    found = profile(engine, make_table(engine, {"age": ("INTEGER", "i % 3")}, 9))
    url = "postgresql://ann:S3$cret@host/db"
    text = propose_policy(found, url, "t")
    assert "S3$cret" not in text
    monkeypatch.setenv("SQLANON_URL", url)
    assert parse_policy(text).source.url == url
    assert parse_policy(propose_policy(found, "duckdb:///a$${x}.duckdb", "t")).source.url == "duckdb:///a$${x}.duckdb"


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [
        ("${WHOLE}", True),
        ("postgresql://ann:${PW}@host/db", True),
        ("postgresql://host/db?password=${PW}", True),
        ("postgresql://${WHO}@host/$$x", True),
        ("postgresql://ann:S3cret@${WHO}/db", False),
        ("postgresql://ann:$${S3cret}@${WHO}/db", False),
        ("postgresql://${WHO}/db?password=S3cret", False),
    ],
)
def test_variables_of_a_url_are_kept_and_passwords_are_not(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, given: str, is_kept: bool
) -> None:
    found = profile(engine, make_table(engine, {"age": ("INTEGER", "i % 3")}, 9))
    for name, value in {"WHOLE": "postgresql://ann:S3cret@host/db", "PW": "S3cret", "WHO": "S3cret"}.items():
        monkeypatch.setenv(name, value)
    text = propose_policy(found, expanded(given), "t")
    assert "S3cret" not in text
    assert (f'url: "{given}"' in text) is is_kept
    assert ('url: "${SQLANON_URL}"' in text) is not is_kept


def test_variables_of_a_file_are_kept(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    found = profile(engine, make_table(engine, {"age": ("INTEGER", "i % 3")}, 9))
    monkeypatch.setenv("PLACE", "/data")
    text = propose_policy(found, None, expanded("${PLACE}/people.tsv"))
    assert "/data" not in text
    policy = parse_policy(text)
    assert (policy.source.file, policy.release.file) == ("/data/people.tsv", "/data/people_released.csv")


@pytest.mark.parametrize("url", [None, "duckdb:///x.duckdb", "postgresql:///x", "spark+local://1"])
def test_a_draft_names_no_algorithm_that_its_engine_lacks(url: str | None) -> None:
    numbers = [replace(facts(name, Kind.INTEGER, share=0.0), span=50.0) for name in ("age", "height")]
    found = Profile(Relation("t"), 1000, tuple(numbers), propose_roles(numbers), (), None, 0, True, NO_REPETITION)
    named = re.findall(r"algorithm: \{name: ([\w-]+)", propose_policy(found, url, "t.parquet"))
    dialect = EMBEDDED if url is None else dialect_of_url(url)
    assert named[0] == "mondrian"
    assert all(dialect.carries_out(own_algorithms()[name].recodes) for name in named)
    assert ("microaggregation" in named) is (dialect.name != "spark")


def test_files_are_released_beside_themselves_in_a_format_that_is_written(engine: Engine) -> None:
    found = profile(engine, make_table(engine, {"age": ("INTEGER", "i % 3")}, 9))
    for source, release in (
        ("in/pat$$ients.csv.gz", "in/pat$$ients_released.csv.gz"),
        ("people.parquet", "people_released.parquet"),
        ("people.2024.TSV", "people_released.2024.csv"),
        ("people.csv.zst", "people_released.csv.gz"),
        ("https://host/in/people.parquet", "people_released.parquet"),
    ):
        policy = parse_policy(propose_policy(found, None, source))
        assert (policy.source.file, policy.release.file) == (source, release)


def facts(name: str, kind: Kind = Kind.TEXT, distinct: int = 50, share: float = 0.0, longest: int = 8) -> ColumnFacts:
    return ColumnFacts(Column(name, kind.value, kind), 1000, 0, distinct, True, share, 1, longest, 0)


@pytest.mark.parametrize(
    ("column", "role"),
    [
        (facts("SSN"), Role.IDENTIFIER),
        (facts("firstName"), Role.IDENTIFIER),
        (facts("Name"), Role.IDENTIFIER),
        (facts("product_name", distinct=5), Role.QUASI_IDENTIFIER),
        (facts("phone_number", share=0.2), Role.IDENTIFIER),
        (facts("doctor_id", share=0.1), Role.QUASI_IDENTIFIER),
        (facts("case_id", Kind.INTEGER, 990, 0.98), Role.IDENTIFIER),
        (facts("reading", Kind.FLOAT, 1000, 1.0), Role.QUASI_IDENTIFIER),
        (facts("x", Kind.UUID), Role.OMIT),
        (facts("x", Kind.UUID, share=1.0), Role.IDENTIFIER),
        (facts("comment", share=0.7), Role.OMIT),
        (facts("comment", longest=500), Role.OMIT),
        (facts("ICD10_CODE", share=0.1), Role.SENSITIVE),
        (facts("primary_diagnosis"), Role.SENSITIVE),
        (facts("annualIncome", Kind.DECIMAL, 900, 0.9), Role.SENSITIVE),
        (facts("salary-class", distinct=2), Role.SENSITIVE),
        (facts("native-country"), Role.QUASI_IDENTIFIER),
        (facts("age", Kind.INTEGER), Role.QUASI_IDENTIFIER),
        (facts("Postal Code", share=0.3), Role.QUASI_IDENTIFIER),
        (facts("flag", Kind.BOOLEAN, 2), Role.QUASI_IDENTIFIER),
        (facts("flag", Kind.BOOLEAN, 1), Role.INSENSITIVE),
        (facts("payload", Kind.OTHER), Role.OMIT),
        (facts("location", Kind.OTHER), Role.OMIT),
        (facts("diagnosis", Kind.OTHER), Role.OMIT),
        (facts("flag", Kind.OTHER, 1), Role.OMIT),
        (facts("nothing", distinct=0), Role.OMIT),
        (facts("salary", distinct=0), Role.OMIT),
        (facts("age", distinct=0), Role.QUASI_IDENTIFIER),
        (facts("package", distinct=6), Role.QUASI_IDENTIFIER),
        (replace(facts("who"), identifies=("name", 0.9)), Role.IDENTIFIER),
        (replace(facts("city"), identifies=("name", 0.9)), Role.QUASI_IDENTIFIER),
        (replace(facts("disease"), identifies=("name", 0.9)), Role.SENSITIVE),
    ],
)
def test_a_role_from_name_and_values(column: ColumnFacts, role: Role) -> None:
    assert propose(column).role is role


def test_words_of_names() -> None:
    assert words_of("patientZipCodes") == ["patient", "zip", "code"]
    assert words_of("PATIENT_ZIP-CODE 2") == ["patient", "zip", "code", "2"]
    assert words_of("address") == ["address"]


BODIES = {"height": ("INTEGER", "i % 50"), "weight": ("DOUBLE PRECISION", "i % 70 + 0.5"), "sex": PATIENTS["sex"]}


@pytest.mark.parametrize(
    ("change", "offered"),
    [
        ({}, True),
        ({"height": ("INTEGER", "CASE WHEN i > 3 THEN i % 50 END")}, False),  # clusters take no NULL in numbers
        ({"birth_date": PATIENTS["birth_date"]}, False),  # which has no centre
        ({"ward": PATIENTS["ward"]}, False),  # as many categories as numbers
    ],
)
def test_clusters_are_an_alternative_where_most_columns_are_numbers(
    engine: Engine, change: dict[str, tuple[str, str]], offered: bool
) -> None:
    table = make_table(engine, BODIES | change, 200)
    text = propose_policy(profile(engine, table), URL, "t")
    assert parse_policy(text).algorithm.name == "mondrian"
    other = "# algorithm: {name: microaggregation}"
    assert (other in text) is offered
    if offered:
        text = text.replace("\nalgorithm: {name: mondrian}", "").replace(other, other.removeprefix("# "))
        text = re.sub(r"role: quasi-identifier, .*}", "role: quasi-identifier}", text)
        resolve(parse_policy(text), engine, replace=True)


def test_values_that_look_like_identifiers_say_more_than_names(engine: Engine) -> None:
    columns = {
        "contact": ("VARCHAR", "'p' || i % 40 || '@example.org'"),
        "diagnosis": ("VARCHAR", "'+49 30 1234' || 100 + i % 40"),
        "net": ("VARCHAR", "'10.0.0.' || i % 40"),
        "age": ("INTEGER", "i % 40"),
        "seen": ("VARCHAR", "'2020-01-' || 10 + i % 20"),
    }
    found = profile(engine, make_table(engine, columns, 200))
    roles = {name: proposal.role for name, proposal in found.proposals.items()}
    assert roles == {
        **dict.fromkeys(("contact", "diagnosis", "net"), Role.IDENTIFIER),
        **dict.fromkeys(("age", "seen"), Role.QUASI_IDENTIFIER),
    }
    assert found.proposals["net"].reason == "100 % of its values look like IP addresses"
    assert draft(engine, found).attributes["contact"].role is Role.IDENTIFIER
