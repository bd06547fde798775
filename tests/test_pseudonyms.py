"""Pseudonyms: keyed hashes of identifiers, the same on both engines as Python's, by a key that nobody sees."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from sqlanon.encoding.pseudonymized import padded
from sqlanon.engines import connect
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.policy.loading import build_policy, parse_stored
from sqlanon.policy.writer import policy_text
from sqlanon.releases.rules.export_sql import sayable_rules
from sqlanon.report.release_audit.auditing import audit_classes
from sqlanon.runs.dry_run import run_dry
from sqlanon.sql import Relation, Text, renderer
from sqlanon.values.digest import table_digest
from tests.rules_support import apply, opened
from tests.run_support import OPTIONS, Database, anonymize, open_database

pytestmark = pytest.mark.slow

KEY = "a key of more than sixteen bytes"
NAMED = {"role": "identifier", "show": "pseudonym", "key": "${SQLANON_TEST_KEY}"}
DRAWN = {"role": "identifier", "show": "surrogate"}
AGE = {"role": "quasi-identifier"}
COLUMNS = {"who": "VARCHAR(20)", "age": "INTEGER", "n": "INTEGER"}
ROLES: dict[str, Any] = {"who": NAMED, "age": AGE, "n": "insensitive"}
ROWS = [("ann", 30, 1), ("bob", 31, 2), ("ann", 32, 3), (None, 33, 4), ("cy", 34, 5), ("bob", 35, 6)]


def keyed(text: str, key: str = KEY) -> str:
    """Python's opinion of a pseudonym."""
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLANON_TEST_KEY", KEY)


def release(database: Database, attribute: Any = NAMED, rows: Any = ROWS, **more: Any) -> list[tuple[Any, ...]]:
    table = database.create(COLUMNS, rows)
    roles = {"who": attribute, "age": AGE, "n": "insensitive"}
    return database.release(table, roles, **{"subject": "none", **more})


# RFC 4231, section 4, the texts that are texts; test case 5 is that of a truncation to 128 bits
VECTORS = [
    (b"\x0b" * 20, "Hi There", "b0344c61d8db38535ca8afceaf0bf12b"),
    (b"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c7"),
    (b"\x0c" * 20, "Test With Truncation", "a3b6167473100ee06e0c796c2955552b"),
    (b"\xaa" * 131, "Test Using Larger Than Block-Size Key - Hash Key First", "60e431591ee0b67f0d8a26aacbf5b77f"),
]


def hashed(database: Database, key: bytes, text: Markup) -> str:
    pads = [Markup(Text(pad)) for pad in padded(key)]
    render = renderer(database.engine)
    ((value,),) = database.sql(f"SELECT {render.written(render.macro('hmac', text, *pads))}")
    return str(value)[:32]


@pytest.mark.parametrize(("key", "text", "expected"), VECTORS)
def test_published_vectors(database: Database, key: bytes, text: str, expected: str) -> None:
    assert hashed(database, key, Markup(Text(text))) == expected


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.binary(min_size=1, max_size=200), text=st.text(st.characters(exclude_characters="\0", codec="utf-8")))
def test_any_key_and_text_are_hashed_as_by_python(database: Database, key: bytes, text: str) -> None:
    expected = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:32]
    assert hashed(database, key, Markup(Text(text))) == expected


def test_rows_of_one_value_have_one_pseudonym_and_null_stays_null(database: Database) -> None:
    shown = {n: who for who, _, n in release(database)}
    assert shown == {n: None if who is None else keyed(who) for who, _, n in ROWS}


ODD = {
    "BIGINT": [(7, "7"), (-(2**63), str(-(2**63)))],
    "DECIMAL(9,2)": [("1.5", "1.50"), ("-0.25", "-0.25")],
    "DOUBLE PRECISION": [(-0.0, "0"), (1e15, "1e+15"), (0.1, "0.1")],
    "DATE": [("2024-02-29", "2024-02-29")],
    "BOOLEAN": [(True, "true")],
    "UUID": [("6F9619FF-8B86-D011-B42D-00C04FC964FF", "6f9619ff-8b86-d011-b42d-00c04fc964ff")],
    "VARCHAR(9)": [
        ("", ""),
        (" a ", " a "),
        ("É", "É"),
        ("E\u0301", "E\u0301"),
        ("\U0001f600", "\U0001f600"),
        ("it's", "it's"),
    ],
}


@pytest.mark.parametrize("type_", ODD)
def test_values_of_every_type_have_one_text(database: Database, type_: str) -> None:
    pairs = ODD[type_] * 2
    table = database.create(
        {"who": type_, "age": "INTEGER", "n": "INTEGER"}, [(v, 1, i) for i, (v, _) in enumerate(pairs)]
    )
    rows = database.release(table, ROLES, subject="none")
    assert {n: who for who, _, n in rows} == {i: keyed(text) for i, (_, text) in enumerate(pairs)}


def test_a_number_and_its_text_have_one_pseudonym_in_two_tables(database: Database) -> None:
    one, other = (
        database.create({"id": type_, "age": "INTEGER"}, [(value, 1), (value, 1)])
        for type_, value in (("INTEGER", 42), ("VARCHAR(9)", "42"))
    )
    shown = {
        row[0] for table in (one, other) for row in database.release(table, {"id": NAMED, "age": AGE}, subject="none")
    }
    assert shown == {keyed("42")}


BYTES = NAMED | {"form": "bytes"}


@pytest.mark.parametrize("subject", ["none", "who"])
def test_bytes_are_those_of_the_digits(database: Database, subject: str) -> None:
    rows = [row for row in ROWS if row[0]] if subject == "who" else ROWS
    table = database.create(COLUMNS, rows)
    released = database.release(table, ROLES | {"who": BYTES}, subject=subject)
    assert dict(database.columns(f"{table}_r"))["who"] == {"duckdb": "BLOB", "postgres": "bytea"}[database.engine]
    assert {n: who and bytes(who).hex() for who, _, n in released} == {n: who and keyed(who) for who, _, n in rows}


@pytest.mark.parametrize("layout", ["flat", "star"])
def test_rows_are_in_the_order_of_bytes_and_apply_makes_the_same(database: Database, layout: str) -> None:
    rows = [(f"p{n}", 30, 1) for n in range(9)] * 2
    table = database.create(COLUMNS, rows)
    where = {"table": f"{table}_r", "layout": layout}
    policy = database.policy(table, ROLES | {"who": BYTES}, subject="none", release=where, digest="run")
    made = anonymize(policy)
    stored = [bytes(who).hex() for (who,) in database.sql(f"SELECT who FROM {table}_r")]
    assert stored == sorted(keyed(who) for who, _, _ in rows)
    apply(database, made.run, table, f"{table}_again")
    assert [bytes(who).hex() for (who,) in database.sql(f"SELECT who FROM {table}_again")] == stored


def test_both_engines_release_one_digest_of_bytes_and_audit_it(tmp_path: Path, postgres_url: str) -> None:
    digests = set()
    for url in (f"duckdb:///{tmp_path / 'x.duckdb'}", postgres_url):
        with open_database(url) as database:
            policy = database.policy(database.create(COLUMNS, ROWS, "people"), ROLES | {"who": BYTES}, subject="none")
            anonymize(policy)
        assert audit_classes(policy, options=OPTIONS).checks["values_equal"].violations == 0
        with connect(url) as engine:
            digests.add(table_digest(engine, Relation("people_r")))
    assert len(digests) == 1


def test_bytes_go_to_another_database_and_to_parquet_but_to_no_csv(tmp_path: Path, postgres_url: str) -> None:
    url = f"duckdb:///{tmp_path / 'x.duckdb'}"
    expected = Counter(None if who is None else keyed(who) for who, _, _ in ROWS)
    roles = ROLES | {"who": BYTES}
    with open_database(url) as source, open_database(postgres_url) as target:
        table = source.create(COLUMNS, ROWS)
        anonymize(source.policy(table, roles, subject="none", release={"url": postgres_url, "table": "carried"}))
        assert Counter(who and bytes(who).hex() for (who,) in target.sql("SELECT who FROM carried")) == expected
        file = tmp_path / "r.parquet"
        anonymize(source.policy(table, roles, subject="none", release={"file": str(file)}))
        assert Counter(who and who.hex() for (who,) in source.sql(f"SELECT who FROM '{file}'")) == expected
        with pytest.raises(PolicyError, match=r"attributes\.who: form: bytes: a CSV file holds texts alone"):
            anonymize(source.policy(table, roles, subject="none", release={"file": str(tmp_path / "r.csv")}))


def test_surrogates_are_dense_and_drawn_anew(database: Database) -> None:
    rows = [(f"p{i}", 30 + i, i) for i in range(40)]
    first, second = ({n: who for who, _, n in release(database, DRAWN, rows)} for _ in range(2))
    assert sorted(first.values()) == sorted(second.values()) == list(range(1, 41))
    assert first != second
    assert list(first.values()) != sorted(first.values()) or list(second.values()) != sorted(second.values())


def test_surrogates_of_null_are_null(database: Database) -> None:
    shown = {n: who for who, _, n in release(database, DRAWN)}
    assert shown[4] is None
    assert shown[1] == shown[3] != shown[2] == shown[6]


@pytest.mark.parametrize("layout", ["flat", "star"])
@pytest.mark.parametrize("algorithm", ["mondrian", "optimal", "microaggregation"])
def test_every_release_of_rows_shows_them(database: Database, algorithm: str, layout: str) -> None:
    table = database.create({"age": "INTEGER", "who": "VARCHAR(20)", "n": "INTEGER"}, [(a, w, n) for w, a, n in ROWS])
    age = AGE | ({"hierarchy": {"intervals": [2, 8]}} if algorithm == "optimal" else {})
    age |= {"show": "mean"} if algorithm == "microaggregation" else {}
    more: dict[str, Any] = {"subject": "none", "algorithm": {"name": algorithm}, "suppression": 0.4}
    more["release"] = {"table": f"{table}_r", "layout": layout}
    rows = database.release(table, {"age": age, "who": NAMED, "n": "insensitive"}, **more)
    expected = {n: None if who is None else keyed(who) for who, _, n in ROWS}
    assert rows
    assert all(expected[n] == who for _, who, n in rows)


def test_keys_are_in_no_statement_log_record_or_table(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES, subject="none")
    result = anonymize(policy)
    secrets = [KEY, KEY.encode().hex(), *padded(KEY.encode())]
    texts = [repr(policy), policy_text(policy), repr(result), *_catalog(database)]
    assert any("count_identities" in text or "HMAC" in text.upper() or "sha256" in text for text in texts)
    assert not [secret for secret in secrets for text in texts if secret in text]
    assert not database.leftovers()


def _catalog(database: Database) -> list[str]:
    """All rows of the tables of catalogs, as text."""
    tables = database.sql(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = 'sqlanon'"
    )
    return [str(row) for schema, name in tables for row in database.sql(f'SELECT * FROM "{schema}"."{name}"')]


def test_policies_are_stored_with_the_name_of_the_key() -> None:
    policy = _policy({"who": NAMED})
    stored = parse_stored(policy_text(policy))
    assert stored.attributes["who"].key == "${SQLANON_TEST_KEY}"
    assert KEY not in policy_text(policy)


def _policy(attributes: Any) -> Any:
    data: dict[str, Any] = {
        "source": {"url": "duckdb:///x.duckdb", "table": "t"},
        "release": {"table": "r"},
        "attributes": attributes,
        "privacy": [{"model": "k-anonymity", "k": 2}],
    }
    return build_policy(data)


@pytest.mark.parametrize("key", ["a plain secret key, 32 bytes long", "${A}plain", 7, ["x"], {"env": "A"}, "${A}${B}"])
def test_a_key_in_the_policy_is_refused_and_not_repeated(key: Any) -> None:
    with pytest.raises(PolicyError, match="where the key is kept") as error:
        _policy({"who": NAMED | {"key": key}})
    assert "plain" not in str(error.value)


WRONG = [
    ({"role": "identifier", "show": "pseudonym"}, "no key"),
    (DRAWN | {"key": "${A}"}, "only show: pseudonym"),
    (DRAWN | {"form": "bytes"}, "form: bytes, which only show: pseudonym"),
    ({"role": "sensitive", "show": "pseudonym", "key": "${A}"}, "role identifier"),
    ({"role": "identifier", "show": "mean"}, "does not use"),
]


@pytest.mark.parametrize(("attribute", "message"), WRONG)
def test_what_makes_no_sense_is_refused(attribute: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        _policy({"who": attribute})


@pytest.mark.parametrize("value", [None, "", "fifteen bytes.."])
def test_missing_and_short_keys_are_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("SQLANON_TEST_KEY")
    if value is not None:
        monkeypatch.setenv("SQLANON_TEST_KEY", value)
    with pytest.raises(
        PolicyError, match=r"attributes\.who: key: the environment variable 'SQLANON_TEST_KEY'"
    ) as error:
        release(database)
    assert "fifteen" not in str(error.value)


def test_a_key_may_be_in_a_file_of_its_owner(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY + "\n", encoding="utf-8")
    attribute = NAMED | {"key": {"file": str(file)}}
    os.chmod(file, 0o644)
    with pytest.raises(PolicyError, match="may be read by others"):
        release(database, attribute)
    os.chmod(file, 0o600)
    assert keyed("ann") in {who for who, _, _ in release(database, attribute)}


TAMPERED = {
    "two identifiers have one pseudonym": "UPDATE {table} SET shown = CAST('x' AS BYTEA) WHERE value <> 'cy'",
    "one pseudonym is the identifier": "UPDATE {table} SET shown = CAST('ann' AS BYTEA) WHERE value = 'ann'",
    "one pseudonym is the identifier as digits": "UPDATE {table} SET shown = CAST('J' AS BYTEA) WHERE value = '4a'",
}
MUTANTS = {
    "two identifiers have one pseudonym": "UPDATE {table} SET shown = 'x' WHERE value <> 'cy'",
    "one pseudonym is the identifier": "UPDATE {table} SET shown = value WHERE value = 'ann'",
    "one has none": "DELETE FROM {table} WHERE value = 'cy'",
}


@pytest.mark.parametrize(
    ("attribute", "mutant"),
    [*((NAMED, one) for one in MUTANTS.values()), *((BYTES, one) for one in TAMPERED.values())],
    ids=[*MUTANTS, *(f"{name}, in bytes" for name in TAMPERED)],
)
def test_pseudonyms_that_are_wrong_are_not_published(
    database: Database, monkeypatch: pytest.MonkeyPatch, attribute: Any, mutant: str
) -> None:
    from sqlanon.encoding import pseudonymized
    from sqlanon.sql import Statement

    create = pseudonymized._create_pseudonyms

    def tampered(engine: Any, *given: Any) -> Any:
        table = create(engine, *given)
        engine.execute(Statement("test", mutant.format(table=table)))
        return table

    monkeypatch.setattr(pseudonymized, "_create_pseudonyms", tampered)
    with pytest.raises(VerificationError, match="pseudonyms_distinct"):
        release(database, attribute, [*ROWS, ("4a", 36, 7)])


def test_releases_by_one_key_are_told_as_joinable(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES, subject="none")
    told = " ".join(anonymize(policy).warnings)
    assert "any two releases by one key can be joined" in told
    assert "Rows of one value show the same" in told


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(1, 6)), min_size=4, max_size=12))
def test_left_out_rows_take_pseudonyms_with_them(database: Database, rows: list[tuple[str | None, int]]) -> None:
    columns = {"who": "VARCHAR(9)", "age": "INTEGER"}
    age = AGE | {"hierarchy": {"intervals": [2]}}
    more: dict[str, Any] = {"subject": "none", "algorithm": {"name": "optimal"}, "suppression": 0.9}
    shown = database.release_once(columns, rows, {"who": NAMED, "age": age}, **more)
    if shown is not None:
        assert not Counter(who for who, _ in shown) - Counter(w if w is None else keyed(w) for w, _ in rows)


def test_rules_are_applied_to_later_rows_with_the_same_pseudonyms(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    roles = ROLES
    made = anonymize(database.policy(table, roles, subject="none"))
    later = database.create(COLUMNS, [("dan", 33, 9), *ROWS])
    apply(database, made.run, later, f"{later}_r")
    shown = dict(database.sql(f"SELECT n, who FROM {later}_r"))
    assert shown[9] == keyed("dan")
    assert shown[1] == keyed("ann")


def test_rules_are_no_statement_that_would_need_the_key(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    made = anonymize(database.policy(table, ROLES, subject="none"))
    refusal = pytest.raises(PolicyError, match=r"attributes\.who: a SELECT has no secret key")
    with opened(database, made.run) as (engine, rules), refusal:
        sayable_rules(engine, rules, database.policy(table, ROLES))


def test_a_published_release_is_held_against_its_source_without_the_key(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path / 'x.duckdb'}"
    with open_database(url) as database:
        policy = database.policy(database.create(COLUMNS, ROWS, "t"), ROLES, subject="none")
        anonymize(policy)
    audit = audit_classes(policy, options=OPTIONS)
    assert audit.checks["values_equal"].violations == audit.checks["classes_equal"].violations == 0
    assert "who has the key" in audit.unchecked["pseudonyms_distinct"]
    with open_database(url) as database:
        database.sql("UPDATE t_r SET n = 7 WHERE n = 1")
    assert audit_classes(policy, options=OPTIONS).checks["values_equal"].violations


def test_a_dry_run_refuses_pseudonyms_by_name(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(PolicyError, match=r"attributes\.who: a dry run reads no identifiers"):
        run_dry(database.policy(table, ROLES, subject="none"), OPTIONS)


def test_spark_refuses_pseudonyms_by_name() -> None:
    assert "log" in SparkSQL.makes_pseudonyms.lacking


@pytest.mark.parametrize("algorithm", ["r-gather", "condensation"])
def test_releases_without_rows_of_persons_refuse_pseudonyms(database: Database, algorithm: str) -> None:
    table = database.create(COLUMNS, ROWS)
    given: dict[str, Any] = {"name": algorithm} | ({"radius": "least"} if algorithm == "r-gather" else {})
    with pytest.raises(PolicyError, match=rf"attributes\.who: {algorithm} releases no row"):
        database.release(table, ROLES, subject="none", algorithm=given)
