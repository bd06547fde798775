"""Persons whom a release shows nothing of: they are counted on the staged classes, and nobody can count them later."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from sqlanon import check_policy, policy_risk
from sqlanon.algorithms.tree import allowable
from sqlanon.encoding import coded_table
from sqlanon.encoding.distinct_tuples import count_tuples
from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.models import models_of
from sqlanon.report.release_audit.auditing import audit_classes
from sqlanon.runs import search_source
from sqlanon.sql import renderer
from sqlanon.staging import rows as staged_rows
from sqlanon.verification.release import verify_release
from tests.cli.support import call
from tests.jobs_support import carry_out, frozen
from tests.persons_support import CASES, GROUPED, QUASI, K, changing_tables
from tests.rules_support import apply
from tests.run_support import OPTIONS, Database, Row, anonymize, duckdb_url, open_database
from tests.test_resuming import resumed, stopped

pytestmark = pytest.mark.slow

COLUMNS = {
    "who": "VARCHAR(9)",
    "age": "INTEGER",
    "town": "VARCHAR(9)",
    "ill": "VARCHAR(9)",
    "paid": "INTEGER",
    "nr": "INTEGER",
}
HIDDEN = {"role": "identifier"}
KEPT = {"ill": {"role": "sensitive"}, "paid": {"role": "sensitive"}, "nr": {"role": "insensitive"}}
ROLES: dict[str, Any] = {"who": HIDDEN, "age": QUASI, "town": QUASI, **KEPT}
LEVELED: dict[str, Any] = {**ROLES, "age": GROUPED["age"], "town": GROUPED["town"]}
CLOSE = {"model": "t-closeness", "attribute": "ill", "t": 0.4}
DIVERSE = {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}
SEARCHES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mondrian": ({"name": "mondrian"}, ROLES),
    "cuts": ({"name": "mondrian"}, ROLES),
    "rothko-t": ({"name": "rothko-t"}, ROLES),
    "optimal": ({"name": "optimal"}, LEVELED),
    "top-down": ({"name": "top-down"}, LEVELED),
    "microaggregation": ({"name": "microaggregation"}, ROLES | {"town": {"role": "insensitive"}}),
}


def numbered(rows: list[Row]) -> list[Row]:
    """Rows, each with a number that the release keeps."""
    return [(*row, number) for number, row in enumerate(rows)]


def persons_of(rows: list[Row], shown: list[Row], *, town: bool = True) -> dict[Row, set[Any]]:
    """The persons whose rows a released class has, by the numbers of these rows; NULL is another person in each."""
    whose = {row[-1]: ("row", row[-1]) if row[0] is None else row[0] for row in rows}
    classes: dict[Row, set[Any]] = defaultdict(set)
    for row in shown:
        classes[row[: 2 if town else 1]].add(whose[row[-1]])
    return classes


@pytest.mark.parametrize("name", sorted(SEARCHES))
@settings(max_examples=4, **CASES)
@given(rows=changing_tables(), k=st.integers(2, 4), suppression=st.sampled_from([0, 0.3]))
def test_classes_hold_k_persons_whom_the_release_lacks(
    database: Database, name: str, rows: list[Row], k: int, suppression: float
) -> None:
    algorithm, roles = SEARCHES[name]
    rows = numbered(rows)
    more = {"suppression": suppression, "suppressed": "star"} if name == "optimal" and suppression else {}
    more |= {"ranges": "cuts"} if name == "cuts" else {}
    models = [K | {"k": k}, *([DIVERSE] if k == 3 else [CLOSE] if k == 2 and name == "mondrian" else [])]
    roles = roles | {"who": HIDDEN | {"nulls": "each"}}
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, roles, privacy=models, subject="who", algorithm=algorithm, **more)
    try:
        result = anonymize(policy)
        shown = database.sql(f"SELECT * FROM {table}_r")
        names = [column for column, _ in database.columns(f"{table}_r")]
    except ProtectionError:
        return
    finally:
        database.sql(f"DROP TABLE IF EXISTS {table}_r")
        database.sql(f"DROP TABLE {table}")
    assert "who" not in names
    classes = persons_of(rows, shown, town=name != "microaggregation")
    assert min(map(len, classes.values())) >= k
    assert result.release.rows == len(shown) == len(rows)
    sizes = Counter(map(len, classes.values()))
    assert sum(one.classes for one in result.release.class_sizes) == sum(sizes.values())
    assert (result.release.min_class_size, result.release.max_class_size) == (min(sizes), max(sizes))
    everybody = Counter(person for persons in classes.values() for person in persons)
    assert (result.subject.persons, result.subject.unit) == (len(everybody), "persons")
    assert result.subject.in_several_classes == sum(n > 1 for n in everybody.values())
    assert database.leftovers() == []


ROWS = numbered([(f"p{n % 4}", 20 + n % 4, "a", "flu", n) for n in range(12)])


def test_nothing_of_persons_is_in_files_stars_and_beside_pseudonyms(tmp_path: Path, database: Database) -> None:
    """A second identifier has surrogates; the hidden one goes into neither table of a star."""
    columns = {**COLUMNS, "visit": "INTEGER"}
    rows = [(*row, row[-1] // 2) for row in ROWS]
    roles = ROLES | {"visit": {"role": "identifier", "show": "surrogate"}}
    table = database.create(columns, rows)
    result = anonymize(database.policy(table, roles, subject="who", release={"table": f"{table}_r", "layout": "star"}))
    assert result.release.min_class_size == 2
    parts = [f"{table}_r", f"{table}_r_rows", f"{table}_r_classes"]
    assert all("who" not in dict(database.columns(part)) for part in parts)
    if database.engine == "duckdb":
        file = tmp_path / "r.parquet"
        anonymize(database.policy(table, roles, subject="who", release={"file": str(file)}))
        names = [name for name, *_ in database.sql(f"DESCRIBE SELECT * FROM '{file}'")]
        assert names == ["age", "town", "ill", "paid", "nr", "visit"]


def test_nulls_of_a_hidden_person_are_refused_or_persons_of_their_own(database: Database) -> None:
    rows = [*ROWS, (None, 20, "a", "flu", 1, 12)]
    table = database.create(COLUMNS, rows)
    with pytest.raises(PolicyError, match="'who' is NULL in 1 of 13 rows"):
        database.release(table, ROLES, subject="who")
    result = anonymize(database.policy(table, ROLES | {"who": HIDDEN | {"nulls": "each"}}, subject="who"))
    assert result.subject.persons == 5


def test_a_check_warns_that_persons_are_counted_once(database: Database) -> None:
    policy = database.policy(database.create(COLUMNS, ROWS), ROLES, subject="who")
    warnings = check_policy(policy, options=OPTIONS).warnings
    assert any("the release shows nothing of 'who'" in warning for warning in warnings)


@pytest.mark.either_engine
def test_what_is_published_can_not_be_judged_by_its_persons(tmp_path: Path) -> None:
    """Models and risk are not reckoned of rows in place of persons; other checks are made."""
    with open_database(duckdb_url(tmp_path / "t.duckdb")) as database:
        policy = database.policy(database.create(COLUMNS, ROWS, "t"), ROLES, subject="who")
        result = anonymize(policy)
    reason = "they count the persons of 'who', of which the release shows nothing"
    with pytest.raises(PolicyError, match=reason):
        verify_release(policy)
    audit = audit_classes(policy)
    assert (audit.verification, audit.failed) == (None, ())
    assert reason in str(audit.unjudged)
    assert "values_equal" in audit.checks
    risk = policy_risk(policy)
    assert (risk.source.persons, risk.release) == (4, None)
    assert "shows nothing of 'who'" in str(risk.note)
    assert result.risk.prosecutor_max == 1 / result.release.min_class_size


@pytest.mark.either_engine
def test_verify_says_that_persons_were_not_counted(tmp_path: Path) -> None:
    with open_database(duckdb_url(tmp_path / "t.duckdb")) as database:
        database.create(COLUMNS, ROWS, "t")
    policy = tmp_path / "policy.yml"
    policy.write_text(
        f"""source: {{url: '{duckdb_url(tmp_path / "t.duckdb")}', table: t}}
release: {{table: t_r}}
subject: who
attributes:
  who: {{role: identifier}}
  age: {{role: quasi-identifier}}
  town: {{role: quasi-identifier}}
  ill: {{role: sensitive}}
  paid: {{role: sensitive}}
  nr: {{role: insensitive}}
privacy: [{{model: k-anonymity, k: 2}}]
"""
    )
    assert call("run", str(policy)).exit_code == 0
    told = call("verify", str(policy))
    assert told.exit_code == 0
    assert "they count the persons of 'who', of which the release shows nothing" in told.stdout
    assert "The run judged them before it published." in told.stdout
    assert "Persons are not counted here" in told.stdout


def test_searches_that_count_rows_are_not_published(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def of_rows(engine: Any, workspace: Any, coded: Any, *_: Any) -> Any:
        return count_tuples(engine, workspace, coded, coded.quasi_identifiers)

    monkeypatch.setattr(search_source, "count_persons", of_rows)
    monkeypatch.setattr(search_source, "models_by_rows", models_of)
    rows = numbered([(f"p{n % 2}", 20 + n % 2, "a", "flu", n) for n in range(20)])
    table = database.create(COLUMNS, rows)
    for roles, algorithm in ((ROLES, "mondrian"), (LEVELED, "optimal")):
        with pytest.raises(VerificationError, match="k-anonymity"):
            database.release(table, roles, subject="who", algorithm={"name": algorithm})


def test_a_tree_that_takes_tuples_for_persons_is_not_published(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = numbered([(f"p{n // 10}", 20 + n, "a", "flu", n) for n in range(20)])
    monkeypatch.setattr(allowable, "list_splits_short_of_persons", lambda *_: (None, []))
    table = database.create(COLUMNS, rows)
    with pytest.raises(VerificationError, match="k-anonymity"):
        database.release(table, ROLES, subject="who")


def test_rows_staged_in_classes_of_others_are_not_published(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The persons counted are those of the source rows that went to a class: staged rows must be these."""
    kept = staged_rows.kept_column

    def halved(coded: Any, field: Any) -> Any:
        column = kept(coded, field)
        if field.attribute.name != "nr":
            return column
        value = renderer(database.engine).written(column.value)
        return type(column)(column.name, Markup(f"CAST(11 - {value} AS INTEGER)"))

    monkeypatch.setattr(staged_rows, "kept_column", halved)
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(VerificationError, match="classes_equal"):
        database.release(table, ROLES, subject="who")


def test_later_rows_and_jobs_hide_persons_too(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    made = anonymize(database.policy(table, ROLES, subject="who"))
    apply(database, made.run, table, f"{table}_again")
    assert "who" not in dict(database.columns(f"{table}_again"))
    frozen(database, made.run, procedure=False)
    database.sql(f"INSERT INTO {table} VALUES ('p4', 20, 'a', 'flu', 1, 12)")
    carry_out(database)
    rows = database.sql(f"SELECT who, age, town, ill, paid, nr FROM {table}")
    classes = persons_of(rows, database.sql(f"SELECT * FROM {table}_r"))
    assert min(map(len, classes.values())) >= 2


def test_a_stopped_run_goes_on_unless_rows_are_of_others_now(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search looked at persons, so that its recoding is not used again where rows have changed hands."""
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES, subject="who")
    at = stopped(policy, "verify", monkeypatch)
    database.sql(f"UPDATE {table} SET who = 'p1' WHERE nr = 0")
    result = resumed(policy, at)
    assert result.resumed is not None
    assert not result.resumed.reused
    assert "the source has changed" in str(result.resumed.reason)


def test_all_rows_are_witnesses_where_persons_are_hidden(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large source a sample is held against the classes, but not where persons are counted by it."""
    monkeypatch.setattr(coded_table, "WITNESS_ROWS", 5)
    monkeypatch.setattr(coded_table, "WITNESS_SAMPLE", 3)
    result = anonymize(database.policy(database.create(COLUMNS, ROWS), ROLES, subject="who"))
    assert (result.checks["classes_equal"].rows, result.subject.persons) == (12, 4)
    assert result.distributions.sampled
    assert result.distributions.rows < 12
