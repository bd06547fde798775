"""Results, risk, bars and disclosure in persons, as brute force over the released rows says."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlanon import policy_risk, run_report
from sqlanon.cli.summary import result_text
from sqlanon.errors import PolicyError
from sqlanon.verification.release import verify_release
from tests.persons_support import COLUMNS, DRAWN, MOVED, ORACLE, ROLES, K, changing_tables, groups, persons_by
from tests.run_support import Database, Row, anonymize, duckdb_url, open_database

pytestmark = pytest.mark.slow


def test_results_tell_of_persons(database: Database) -> None:
    rows = [(f"p{n % 6}", 20 + n % 6, "a", "flu", n) for n in range(24)]
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, ROLES, privacy=[K], subject="who")
    result = anonymize(policy)
    assert (result.release.rows, result.subject.persons) == (24, 6)
    assert result.release.min_class_size == 3
    assert result.risk.prosecutor_max == pytest.approx(1 / 3)
    assert result.source.figures.min_class_size == 1
    assert "24 rows of 6 persons" in result.subject.note
    assert {model.worst for model in result.models} == {3}


def test_the_risk_of_a_policy_is_of_its_persons(database_url: str) -> None:
    """Persons are at a greater risk than their rows, in the source and in the release."""
    rows = [(f"p{n // 3}", 20 + n // 12, "a", "flu", 1) for n in range(48)]
    with open_database(database_url) as database:
        table = database.create(COLUMNS, rows)
        policy = database.policy(table, ROLES, privacy=[K], subject="who")
        anonymize(policy)
        released = database.sql(f"SELECT count(DISTINCT who) FROM {table}_r GROUP BY age, town")
    measured = policy_risk(policy)
    assert measured.release is not None
    for one in (measured.source, measured.release):
        assert (one.rows, one.persons, one.subject) == (48, 16, "who")
    assert measured.source.prosecutor.max == 1 / 4
    assert measured.release.prosecutor.max == 1 / min(persons for (persons,) in released)


@ORACLE
@given(rows=changing_tables())
def test_risk_takes_rows_of_nobody_known_for_a_person_each(database_url: str, rows: list[Row]) -> None:
    with open_database(database_url) as database:
        table = database.create(COLUMNS, rows)
        policy = database.policy(table, ROLES | {"who": DRAWN | {"nulls": "each"}}, subject="who")
    measured = policy_risk(policy).source
    persons, _ = groups(rows)
    assert measured.persons == len(set().union(*persons.values()))
    assert measured.prosecutor.max == 1 / min(map(len, persons.values()))
    with open_database(database_url) as database:
        database.sql(f"DROP TABLE {table}")


def test_summary_page_and_json_name_persons_as_what_is_counted(tmp_path: Path) -> None:
    """Sixteen persons of three rows each: figures of classes are of persons wherever they are read, losses of rows."""
    rows = [(f"p{n // 3}", 20 + n // 12, "a", "flu", 1) for n in range(48)]
    with open_database(duckdb_url(tmp_path / "t.duckdb")) as database:
        policy = database.policy(database.create(COLUMNS, rows, "t"), ROLES, privacy=[K], subject="who")
        result = anonymize(policy)
    assert (result.as_json()["subject"]["unit"], policy_risk(policy).source.unit) == ("persons", "persons")
    assert verify_release(policy).as_json()["unit"] == "persons"
    assert (result.source.rows, result.release.class_sizes[0].rows) == (48, 16)
    summary = result_text(result, policy)
    assert "persons in a class: least 4" in summary
    assert "persons alone with their quasi-identifiers" in summary
    assert not re.search("rows (in a class|alone with)", summary)
    page = run_report(result.run, policy=policy, population=16)
    assert "persons in the smallest class" in page
    assert "Every class holds rows of at least 3 persons." in page
    assert "<h2>Persons, not rows</h2>" in page
    assert "Share of the persons whose risk is above so much." in page
    with pytest.raises(PolicyError, match="A population of 15 can't be: the release has 16 persons"):
        run_report(result.run, policy=policy, population=15)


@ORACLE
@given(rows=changing_tables(), k=st.integers(1, 3))
def test_bars_of_distributions_are_of_k_persons(database: Database, rows: list[Row], k: int) -> None:
    """Nobody has more rows than a bar stands for divided by the persons it has to be of."""
    rows = [row for row in rows if row[0] is not None] + [(f"p{n}", 20 + n, "a", "flu", 1) for n in range(3)]
    table = database.create(COLUMNS, rows)
    result = anonymize(database.policy(table, ROLES, privacy=[K | {"k": k}], subject="who"))
    for name in (table, f"{table}_r"):
        database.sql(f"DROP TABLE {name}")
    most = max(Counter(who for who, *_ in rows).values())
    assert result.distributions.least == 5 * most
    for column in result.distributions.columns:
        for bar in column.bars:
            assert not bar.before or bar.before * len(rows) >= min(5 * most, len(rows)) - 1e-2


def test_results_tell_of_persons_in_several_classes(database_url: str) -> None:
    """Ages are cut behind 30: p0 has both of theirs below, three persons one on each side, and p4 one above."""
    with open_database(database_url) as database:
        table = database.create(COLUMNS, MOVED)
        policy = database.policy(table, ROLES, privacy=[K | {"k": 4}], subject="who")
        result = anonymize(policy)
        classes = database.sql(f"SELECT count(DISTINCT who) FROM {table}_r GROUP BY age, town ORDER BY 1")
    assert classes == [(4,), (4,)]
    assert (result.subject.persons, result.subject.in_several_classes) == (5, 3)
    assert "3 persons (60.0%) have rows in several classes" in result.subject.note
    assert "intersect" in result.subject.note
    assert (result.release.min_class_size, result.release.rows) == (4, 17)
    assert (result.source.figures.classes, result.source.figures.mean_class_size) == (8, 9 / 8)
    verified = verify_release(policy)
    assert verified.persons is not None
    assert (verified.persons.rows, verified.persons.persons, verified.persons.several) == (17, 5, 3)


@ORACLE
@given(rows=changing_tables(), k=st.integers(1, 3))
def test_what_singles_out_and_what_classes_tell_is_of_persons(database: Database, rows: list[Row], k: int) -> None:
    """Persons are alone with their age, and a class tells their illness, however many rows of theirs say so."""
    rows = [row for row in rows if row[0] is not None]
    rows += [(f"p{n}", 20 + n, "a", "flu", 1) for n in range(3)] + [("p0", 21, "b", "flu", 1)]
    table = database.create(COLUMNS, rows)
    result = anonymize(database.policy(table, ROLES, privacy=[K | {"k": k}], subject="who"))
    shown = database.sql(f"SELECT * FROM {table}_r")
    for name in (table, f"{table}_r"):
        database.sql(f"DROP TABLE {name}")
    of_age = persons_by(rows, 1)
    alone = sum(len(who) == 1 for who in of_age.values()) / sum(map(len, of_age.values()))
    measured = {one.columns: one.unique for one in result.combinations.best}
    assert measured["age",] == pytest.approx(alone, abs=1e-4)
    classes = [
        (len(set().union(*known)), max(map(len, known)))
        for values in groups(shown)[1].values()
        if (known := [who for value, who in values.items() if value is not None])
    ]
    told = result.disclosure[0]
    assert (told.attribute, told.rows) == ("ill", sum(n for n, _ in classes))
    assert told.one_value == sum(n for n, most in classes if most == n)
    assert told.confidence == pytest.approx(max(most / n for n, most in classes))
    assert told.above_50 == sum(n for n, most in classes if most > 0.5 * n)
