"""Masks of identifiers: constants, masks, faked values and NULL, the same on both engines as Python's by one key."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from sqlanon.encoding.word_lists import words_of
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.policy.loading import build_policy, parse_stored
from sqlanon.policy.writer import policy_text
from sqlanon.releases.rules.export_sql import sayable_rules
from sqlanon.runs.dry_run import run_dry
from sqlanon.sql import Statement
from sqlanon.verification.pseudonyms import check_pseudonyms
from tests.cli.support import call_main
from tests.masking_support import mask, masked, masking_data, masking_policy
from tests.rules_support import apply, opened
from tests.run_support import OPTIONS, Database, anonymize

pytestmark = pytest.mark.slow

KEY = "a key of more than sixteen bytes"
KINDS = ("first-name", "last-name", "name", "e-mail", "phone", "address", "city")
VALUES = ["ann@clinic.org", "", "a", "né", "Ünïcode 😀", "it's", "***", "ann@clinic.org", None, "Z" * 300, "E\u0301\n"]
CONSTANT = {"role": "identifier", "show": "constant", "constant": "it's hidden"}
NULL = {"role": "identifier", "show": None}
COLUMNS = {'Wh"o né': "VARCHAR(400)", "age": "INTEGER", "n": "INTEGER"}
WHO = next(iter(COLUMNS))
ROWS = [(value, 30 + n, n) for n, value in enumerate(VALUES)]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLANON_TEST_KEY", KEY)


def faked(kind: str) -> dict[str, Any]:
    return {"role": "identifier", "show": "faked", "fake": kind, "key": "${SQLANON_TEST_KEY}"}


def shortened(first: int, last: int) -> dict[str, Any]:
    return {"role": "identifier", "show": "mask", "first": first, "last": last}


def fake_of(kind: str, value: str, key: str = KEY) -> str:
    """Python's opinion of a faked value."""
    digits = hmac.new(key.encode(), f"{kind}: {value}".encode(), hashlib.sha256).hexdigest()
    lists = words_of(kind)
    places = [int(digits[15 * n : 15 * n + 15], 16) % len(words) for n, words in enumerate(lists)]
    text = "".join(words[place] for words, place in zip(lists, places, strict=True))
    if text.lower() != value.lower():
        return text
    return lists[0][(places[0] + 1) % len(lists[0])] + text.removeprefix(lists[0][places[0]])


def mask_of(value: str, first: int, last: int) -> str:
    """Python's opinion of a mask."""
    if len(value) <= first + last:
        return "*" * len(value)
    return value[:first] + "*" * (len(value) - first - last) + value[len(value) - last :]


def shown(database: Database, attribute: Any, rows: Any = ROWS) -> dict[int, Any]:
    """Read what the release shows of the identifier, by the number of the row."""
    table = database.create(COLUMNS, rows)
    released = masked(database, table, {WHO: attribute, "age": "insensitive", "n": "insensitive"})
    assert database.leftovers() == []
    return {n: who for who, _, n in released}


@pytest.mark.parametrize("kind", KINDS)
def test_faked_values_are_those_of_the_key_and_null_stays_null(database: Database, kind: str) -> None:
    expected = {n: None if value is None else fake_of(kind, value) for n, value in enumerate(VALUES)}
    assert shown(database, faked(kind)) == expected


def test_a_faked_value_is_never_the_value_in_its_place(database: Database) -> None:
    kind, value = "first-name", "x"
    own = next(word for word in words_of(kind)[0] if fake_of_place(kind, word) == word)
    for text in (own, own.upper()):
        result = shown(database, faked(kind), [(text, 1, 1), (value, 2, 2)])
        assert result[1].lower() != text.lower()
        assert result[1] == fake_of(kind, text)


def fake_of_place(kind: str, word: str) -> str:
    """The word in the place that the value says, were it not the value itself."""
    digits = hmac.new(KEY.encode(), f"{kind}: {word}".encode(), hashlib.sha256).hexdigest()
    words = words_of(kind)[0]
    return words[int(digits[:15], 16) % len(words)]


def test_faked_values_are_of_reserved_ranges() -> None:
    assert set(words_of("e-mail")[-1]) == {"@example.com", "@example.net", "@example.org"}
    assert all(word.startswith("555-01") for word in words_of("phone")[-1])
    assert all(int(word.removeprefix(", ")) < 501 for word in words_of("address")[-1])
    for kind in KINDS:
        for words in words_of(kind):
            assert len({word.lower() for word in words}) == len(words) > 1


@pytest.mark.parametrize(("first", "last"), [(0, 0), (1, 0), (0, 4), (2, 3), (100, 100)])
def test_masks_keep_characters_at_the_ends(database: Database, first: int, last: int) -> None:
    expected = {n: None if value is None else mask_of(value, first, last) for n, value in enumerate(VALUES)}
    assert shown(database, shortened(first, last)) == expected


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=9), min_size=1, max_size=6),
    first=st.integers(0, 4),
    last=st.integers(0, 4),
)
def test_any_text_is_masked_as_by_python(database: Database, values: list[str], first: int, last: int) -> None:
    rows = [(value, 1, n) for n, value in enumerate(values)]
    assert shown(database, shortened(first, last), rows) == {n: mask_of(v, first, last) for n, v in enumerate(values)}


def test_a_constant_is_shown_for_all_but_null(database: Database) -> None:
    assert shown(database, CONSTANT) == {n: None if v is None else "it's hidden" for n, v in enumerate(VALUES)}


@pytest.mark.parametrize("type_", ["DATE", "INTEGER", "VARCHAR(9)", "UUID"])
def test_null_has_the_type_of_the_column(database: Database, type_: str) -> None:
    values = {"DATE": "2024-01-01", "INTEGER": 7, "VARCHAR(9)": "x", "UUID": "6f9619ff-8b86-d011-b42d-00c04fc964ff"}
    table = database.create({"who": type_, "n": "INTEGER"}, [(values[type_], 1), (None, 2)])
    assert Counter(masked(database, table, {"who": NULL, "n": "insensitive"})) == Counter([(None, 1), (None, 2)])
    assert database.columns(f"{table}_r") == database.columns(table)


@pytest.mark.parametrize("algorithm", ["mondrian", "optimal"])
@pytest.mark.parametrize("attribute", [faked("name"), shortened(1, 1), CONSTANT, NULL])
def test_releases_of_classes_show_them_too(database: Database, attribute: Any, algorithm: str) -> None:
    table = database.create(COLUMNS, ROWS)
    age = {"role": "quasi-identifier"} | ({"hierarchy": {"intervals": [2, 8]}} if algorithm == "optimal" else {})
    more: dict[str, Any] = {"subject": "none", "algorithm": {"name": algorithm}, "suppression": 0.4}
    rows = database.release(table, {WHO: attribute, "age": age, "n": "insensitive"}, **more)
    expected = shown(database, attribute)
    assert rows
    assert all(expected[n] == who for who, _, n in rows)


def test_rules_are_applied_to_later_rows_with_the_same_fakes(database: Database) -> None:
    roles = {WHO: faked("e-mail"), "age": {"role": "quasi-identifier"}, "n": "insensitive"}
    made = anonymize(database.policy(database.create(COLUMNS, ROWS), roles, subject="none"))
    later = database.create(COLUMNS, [("dan", 33, 99), *ROWS])
    apply(database, made.run, later, f"{later}_r")
    later_shown = {n: who for who, _, n in database.sql(f"SELECT * FROM {later}_r")}
    assert later_shown[99] == fake_of("e-mail", "dan")
    assert later_shown[0] == fake_of("e-mail", str(VALUES[0]))
    with pytest.raises(PolicyError, match="makes no faked values"), opened(database, made.run) as (engine, rules):
        sayable_rules(engine, rules, database.policy("t", roles))


@pytest.mark.parametrize("attribute", [faked("e-mail"), shortened(1, 1), CONSTANT])
def test_masks_go_to_other_databases_and_files(
    tmp_path: Path, databases: tuple[Database, Database], attribute: Any
) -> None:
    source, target = databases
    expected = Counter(shown(source, attribute).items())
    table = source.create(COLUMNS, ROWS)
    roles = {WHO: attribute, "age": "insensitive", "n": "insensitive"}
    mask(masking_policy(source, table, roles, release={"url": target.url, "table": "carried"}))
    assert Counter((n, who) for who, _, n in target.sql("SELECT * FROM carried")) == expected
    for suffix in ("parquet", "csv"):
        file = tmp_path / f"r.{suffix}"
        mask(masking_policy(source, table, roles, release={"file": str(file)}, catalog={"url": source.url}))
        rows = source.sql(f"SELECT * FROM '{file}'")
        if suffix == "csv":  # whose readers take an empty text for NULL
            rows = [(who or None, age, n) for who, age, n in rows]
            expected = Counter({(n, who or None): times for (n, who), times in expected.items()})
        assert Counter((int(n), who) for who, _, n in rows) == expected


def test_what_a_mask_tells_is_said_before_a_run(
    database: Database, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = database.create(
        {"a": "VARCHAR(9)", "b": "VARCHAR(9)", "c": "VARCHAR(9)", "n": "INTEGER"}, [("x", "y", "z", 1)]
    )
    roles = {"a": shortened(1, 2), "b": faked("name"), "c": CONSTANT, "n": "insensitive"}
    (policy := tmp_path / "policy.yml").write_text(json.dumps(masking_data(database, table, roles)))
    code, told, said = call_main(capsys, "check", policy)
    assert code == 0, said
    assert "its masks show 1 characters at the beginning and 2 at the end" in told
    assert "a name may be that of somebody else" in told
    assert "nothing of an identifier but whether there is one" in told


def test_keys_are_in_no_statement(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = masking_policy(database, table, {WHO: faked("name"), "age": "insensitive", "n": "insensitive"})
    result = mask(policy)
    steps = [str(row) for row in database.sql("SELECT * FROM sqlanon.steps")]
    texts = [*steps, repr(policy), policy_text(policy), repr(result)]
    assert any("create_fakes" in step for step in steps)
    assert not [text for text in texts if KEY in text or KEY.encode().hex() in text]
    assert parse_stored(policy_text(policy)).attributes[WHO].fake == "name"


TAMPERED = {
    "a faked value": (faked("name"), "'Jane Doe'"),
    "the value itself": (faked("name"), "'a'"),
    "a constant": (CONSTANT, "'it'"),
    "a mask": (shortened(0, 1), "'a'"),
    "a value for NULL": (NULL, "'a'"),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_masks_that_are_wrong_are_not_published(database: Database, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, value = TAMPERED[case]

    def tampered(engine: Any, workspace: Any, plan: Any, staged: Any, omitted: int) -> Any:
        statement = f'UPDATE {staged.final} SET "Wh""o né" = {value} WHERE n = 2'
        engine.execute(Statement("tamper", Markup(statement)))
        return check_pseudonyms(engine, workspace, plan, staged, omitted)

    monkeypatch.setattr("sqlanon.methods.masking.verify.check_pseudonyms", tampered)
    with pytest.raises(VerificationError, match="masks_true"):
        shown(database, attribute)


def test_a_fake_that_is_its_own_value_is_not_published(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlanon.encoding import pseudonymized

    create = pseudonymized._create_fakes

    def tampered(engine: Any, plan: Any, workspace: Any, fakes: Any, *more: Any) -> None:
        create(engine, plan, workspace, fakes, *more)
        engine.execute(Statement("tamper", Markup(f"UPDATE {fakes} SET shown = upper(value) WHERE value = 'a'")))

    monkeypatch.setattr(pseudonymized, "_create_fakes", tampered)
    with pytest.raises(VerificationError, match="masks_true"):
        shown(database, faked("name"))


WRONG = [
    ({"show": "constant"}, "no constant"),
    ({"show": "constant", "constant": "x", "key": "${A}"}, "has a key"),
    ({"show": "mask"}, "neither first nor last"),
    ({"show": "mask", "first": -1}, "first"),
    ({"show": "mask", "first": 1, "fake": "name"}, "only show: faked"),
    ({"show": "faked", "fake": "name"}, "no key"),
    ({"show": "faked", "key": "${A}"}, "no fake"),
    ({"show": "faked", "fake": "nam", "key": "${A}"}, "fake"),
    ({"show": "pseudonym", "key": "${A}", "last": 1}, "only show: mask"),
    ({"constant": "x"}, "only show: constant"),
]


@pytest.mark.parametrize(("given_keys", "message"), WRONG)
def test_what_makes_no_sense_is_refused(given_keys: Any, message: str) -> None:
    data = {
        "source": {"url": "duckdb:///x.duckdb", "table": "t"},
        "release": {"table": "r"},
        "attributes": {"who": {"role": "identifier"} | given_keys, "n": {"role": "insensitive"}},
        "algorithm": {"name": "masking"},
    }
    with pytest.raises(PolicyError, match=message):
        build_policy(data)


def test_other_roles_and_subjects_and_numbers_are_refused(database: Database) -> None:
    table = database.create({"who": "INTEGER", "age": "INTEGER"}, [(1, 1), (2, 2)])
    with pytest.raises(PolicyError, match="which is for role identifier"):
        masked(database, table, {"who": CONSTANT | {"role": "sensitive"}, "age": "insensitive"})
    with pytest.raises(PolicyError, match="show: mask is for texts"):
        masked(database, table, {"who": shortened(1, 0), "age": "insensitive"})
    with pytest.raises(PolicyError, match="subject: 'who' tells persons apart, and its show: constant does not"):
        database.release(table, {"who": CONSTANT, "age": {"role": "quasi-identifier"}}, subject="who")


def test_dry_runs_and_lists_that_are_not_there_are_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = masking_policy(database, table, {WHO: faked("name"), "age": "insensitive", "n": "insensitive"})
    with pytest.raises(PolicyError, match="a dry run reads no identifiers"):
        run_dry(policy, OPTIONS)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "faker" else object())
    with pytest.raises(PolicyError, match=r"pip install 'sqlanon\[faked\]'"):
        mask(policy)
