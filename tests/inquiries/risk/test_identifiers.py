"""Columns that look like identifiers: by names, and by patterns and check digits that both engines count alike."""

from __future__ import annotations

import pytest

from sqlanon import table_risk
from sqlanon.engines.base import Engine
from sqlanon.inquiries.risk import identifiers
from sqlanon.inquiries.risk.identifiers import find_identifiers, kinds_by_name, known_names, measure_patterns
from sqlanon.results.codec import to_json
from sqlanon.results.risk import Evidence, IdentifierSign
from tests.cli.support import execute
from tests.inquiries.risk.tables import Row, make_table

pytestmark = pytest.mark.slow

VALUES = {
    "email": ["ann@example.org", "o'neil.b+x@mail.example.co.uk", "C_D@EXAMPLE.COM"],
    "url": ["https://example.org/a?b=c", "www.example.org"],
    "mac": ["00:1A:2b:3c:4D:5e", "00-1a-2b-3c-4d-5e"],
    "ip": ["192.168.0.1", "255.255.255.255", "2001:db8::ff00:42:8329"],
    "iban": [
        "DE89 3704 0044 0532 0130 00",
        "GB82WEST12345698765432",
        "NO9386011117947",
        "MT84MALT011000012345MTLCAST001S",
    ],
    "card": ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005", "6011000990139424"],
    "ssn": ["123-45-6789", "899-01-0001"],
    "nhs": ["943 476 5919", "4010232137"],
    "date": ["1980-02-29", "03/04/1975", "1.12.1999", "2001-01-01T10:00:00"],
    "phone": ["+49 30 1234567", "(030) 123-4567", "030/1234567", "555-123-4567"],
}
NEAR = {
    "email": ["ann@example", "@example.org", "a b@example.org"],
    "url": ["example", "http:/x"],
    "mac": ["00:1A:2b:3c:4D", "12:30:45"],
    "ip": ["256.1.1.1", "1.2.3", "12:30:45"],
    "iban": ["DE88 3704 0044 0532 0130 00", "GB82WEST12345698765423", "DE89"],
    "card": ["4111 1111 1111 1112", "1234567890123", "411111111111"],
    "ssn": ["000-12-3456", "666-12-3456", "900-12-3456", "123456789"],
    "nhs": ["943 476 5918", "40102321370"],
    "date": ["1980", "12.5", "10:30"],
    "phone": ["12345", "53703", "12.75", "J45.9"],
}


@pytest.mark.parametrize("name", VALUES)
def test_values_match_their_pattern_and_near_ones_do_not(engine: Engine, name: str) -> None:
    rows = [*((value, near) for value in VALUES[name] for near in NEAR[name]), (None, None)]
    table = make_table(engine, {"right": "VARCHAR(50)", "near": "VARCHAR(50)"}, rows)
    shares = measure_patterns(engine, table, engine.columns(table))
    assert shares["right"][name] == 1.0
    assert shares["near"][name] == 0.0


def test_the_stricter_pattern_says_the_kind(engine: Engine) -> None:
    columns = {f"c{n}": "VARCHAR(50)" for n in range(len(VALUES))}
    rows = [tuple(values[turn % len(values)] for values in VALUES.values()) for turn in range(12)]
    table = make_table(engine, columns, rows)
    kinds = {sign.column: sign.kind for sign in find_identifiers(engine, table, engine.columns(table), len(rows))}
    expected = ["email", "url", "device", "ip-address", "iban", "card", "national-id", "national-id", "date", "phone"]
    assert kinds == dict(zip(columns, expected, strict=True))


def test_shares_are_of_the_values_that_there_are(engine: Engine) -> None:
    rows = (
        [("a@example.org", 4111111111111111, 1, None)] * 6 + [("none", 2, 2, None)] * 2 + [(None, None, None, None)] * 9
    )
    kinds = {"x": "VARCHAR(20)", "y": "BIGINT", "z": "INTEGER", "w": "VARCHAR(5)"}
    table = make_table(engine, kinds, rows)
    signs = find_identifiers(engine, table, engine.columns(table), len(rows))
    assert signs == (
        IdentifierSign("x", "email", Evidence(name=False, type=False, share=0.75)),
        IdentifierSign("y", "card", Evidence(name=False, type=False, share=0.75)),
    )
    few = [("a@example.org", 1, 1, None)] * 2 + [("none", 1, 1, None)] * 3
    table = make_table(engine, kinds, few, "few")
    assert find_identifiers(engine, table, engine.columns(table), len(few)) == ()


def test_each_kind_of_safe_harbor_has_names() -> None:
    """45 CFR 164.514(b)(2)(i), from A to Q; R, any other number of a person, is a key of persons."""
    names = {
        "last_name": "name",
        "street": "address",
        "zip": "place",
        "admissionDate": "date",
        "phone_no": "phone",
        "Fax": "fax",
        "e-mail": "email",
        "ssn": "national-id",
        "mrn": "medical-record",
        "health_plan_id": "health-plan",
        "account_no": "account",
        "certificate_number": "license",
        "licence plate": "vehicle",
        "deviceSerial": "device",
        "home_url": "url",
        "ip_address": "ip-address",
        "fingerprints": "biometric",
        "photo": "photo",
        "patient_id": "person-key",
    }
    assert {name: kind for name, kind in names.items() if kind not in kinds_by_name(name)} == {}
    for harmless in ("device_type", "certificate", "plan", "serial", "voice", "iris"):
        assert kinds_by_name(harmless) == ()


def test_a_name_is_held_against_the_values(engine: Engine) -> None:
    columns = {
        "email": "VARCHAR(20)",
        "birth_date": "DATE",
        "last_name": "VARCHAR(9)",
        "patient_id": "INTEGER",
        "n": "INTEGER",
    }
    table = make_table(engine, columns, [("unknown", "1980-01-01", "Smith", 1, 2)] * 3)
    signs = find_identifiers(engine, table, engine.columns(table), 3)
    assert {sign.column: (sign.kind, sign.evidence) for sign in signs} == {
        "email": ("email", Evidence(name=True, type=False, share=0.0)),
        "birth_date": ("date", Evidence(name=True, type=True, share=None)),
        "last_name": ("name", Evidence(name=True, type=False, share=None)),
        "patient_id": ("person-key", Evidence(name=True, type=False, share=None)),
    }


FIRST, LAST = ("anna", "berta", "çelik", "dora", "emil"), ("ahmadi", "o'neil", "paris", "smith", "müller")


def test_columns_of_names_are_known_by_word_lists(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole names in either order; not of a few names, nor where a word is none, nor in a column that is named else."""
    monkeypatch.setattr(identifiers, "known_names", lambda: (*FIRST, *LAST))
    pairs = [(first, last) for first in FIRST for last in LAST]
    rows: list[Row] = [
        (
            f"{a} {b}",
            f" {b.capitalize()}, {a} x. {a.upper()}",
            "smith" if n % 2 else "paris",
            f"{a} {chr(97 + n)}-street",
            f"{b} {a}",
        )
        for n, (a, b) in enumerate(pairs)
    ]
    columns = dict.fromkeys(["who", "whom", "race", "where_to", "city"], "VARCHAR(40)")
    table = make_table(engine, columns, [*rows, (None,) * 5, ("x y",) * 5])
    signs = find_identifiers(engine, table, engine.columns(table), 27)
    assert signs == (
        IdentifierSign("who", "name", Evidence(name=False, type=False, share=25 / 26)),
        IdentifierSign("whom", "name", Evidence(name=False, type=False, share=25 / 26)),
        IdentifierSign("city", "place", Evidence(name=True, type=False, share=None)),
    )
    monkeypatch.setattr(identifiers, "known_names", lambda: ())
    assert [sign.column for sign in find_identifiers(engine, table, engine.columns(table), 27)] == ["city"]


@pytest.mark.either_engine
def test_the_library_knows_names_of_many_languages(engine: Engine) -> None:
    pytest.importorskip("faker")
    names = known_names()
    assert {"mary", "smith", "müller", "garcía", "иван"} <= set(names)
    assert "mr" not in names
    assert not any(set(name) & set(" \n") for name in names)
    assert len(names) > 10_000
    rows: list[Row] = [(name.capitalize(),) for name in names[1_000:20_000:500]]
    table = make_table(engine, {"a": "VARCHAR(50)"}, rows)
    assert [sign.kind for sign in find_identifiers(engine, table, engine.columns(table), len(rows))] == ["name"]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("homePhone", ("phone",)),
        ("SSN", ("national-id",)),
        ("zip_code", ("place",)),
        ("date_of_birth", ("date",)),
        ("name", ("name",)),
        ("product_name", ()),
        ("customerNo", ("person-key",)),
        ("age", ()),
    ],
)
def test_kinds_by_name(name: str, kinds: tuple[str, ...]) -> None:
    assert kinds_by_name(name) == kinds


@pytest.mark.either_engine
def test_the_risk_of_a_table_lists_them(database_url: str) -> None:
    execute(database_url, "CREATE TABLE t AS SELECT 'a@example.org' AS contact, 30 AS age")
    assert to_json(table_risk(database_url, "t", ["age"]))["identifiers"] == [
        {"column": "contact", "kind": "email", "evidence": {"name": False, "type": False, "share": 1.0}}
    ]
