"""Rules, jobs, dry runs, resumed runs and streams of policies with a subject."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.methods.clustering.stream_plan import stream_problems
from sqlanon.runs.dry_run.running import run_dry
from tests.jobs_support import carry_out, frozen
from tests.persons_support import CLOSE, COLUMNS, DRAWN, GROUPED, MOVED, ORACLE, ROLES, ROWS, K, changing_tables, groups
from tests.rules_support import apply
from tests.run_support import OPTIONS, Database, Row, anonymize
from tests.test_resuming import cleared, resumed, stopped

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("shown", [DRAWN, {"role": "identifier"}])
def test_a_dry_run_refuses_persons_by_name(database: Database, shown: Any) -> None:
    policy = database.policy(database.create(COLUMNS, ROWS), ROLES | {"who": shown}, subject="who")
    with pytest.raises(PolicyError, match="subject: a dry run counts rows, and not the persons of 'who'"):
        run_dry(policy, OPTIONS)


def test_a_procedure_refuses_persons_by_name(database: Database) -> None:
    if database.engine == "duckdb":
        return
    table = database.create(COLUMNS, ROWS)
    made = anonymize(database.policy(table, ROLES, subject="who"))
    with pytest.raises(PolicyError, match="subject: a procedure counts rows, and not the persons of 'who'"):
        frozen(database, made.run)


@ORACLE
@given(rows=changing_tables(), later=changing_tables(), name=st.sampled_from(["mondrian", "optimal", "top-down"]))
def test_rules_are_applied_to_persons(database: Database, rows: list[Row], later: list[Row], name: str) -> None:
    """Later rows are recoded by the rules of a run; classes of too few persons are left out, or nothing is released."""
    table, other = database.create(COLUMNS, rows), database.create(COLUMNS, later)
    policy = database.policy(table, GROUPED, privacy=[K | {"k": 2}], subject="who", algorithm={"name": name})
    try:
        made = anonymize(policy)
        apply(database, made.run, other, f"{other}_again")
        persons, _ = groups(database.sql(f"SELECT * FROM {other}_again"))
        assert min(map(len, persons.values())) >= 2
    except ProtectionError:
        pass
    for made_table in (table, other, f"{table}_r", f"{other}_again"):
        database.sql(f"DROP TABLE IF EXISTS {made_table}")


def test_jobs_apply_rules_to_persons(database: Database) -> None:
    table = database.create(COLUMNS, MOVED)
    made = anonymize(database.policy(table, ROLES, subject="who"))
    frozen(database, made.run, procedure=False)
    database.sql(f"INSERT INTO {table} VALUES ('p5', 20, 'a', 'flu', 1)")
    carry_out(database)
    counts = database.sql(f"SELECT count(DISTINCT who) FROM {table}_r GROUP BY age, town")
    assert min(persons for (persons,) in counts) >= 2


def test_rules_are_not_applied_where_shares_are_of_persons(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    made = anonymize(database.policy(table, ROLES, privacy=[K | {"k": 2}, CLOSE | {"t": 0.9}], subject="who"))
    for act in (lambda: frozen(database, made.run), lambda: apply(database, made.run, table, f"{table}_again")):
        with pytest.raises(PolicyError, match="counts rows, by which t-closeness can't be judged of the persons"):
            act()


def test_a_stopped_run_goes_on_with_persons_and_the_same_pseudonyms(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLANON_TEST_KEY", "a key of more than sixteen bytes")
    named = {"role": "identifier", "show": "pseudonym", "key": "${SQLANON_TEST_KEY}"}
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES | {"who": named}, subject="who")
    anonymize(policy)
    expected = database.sql(f"SELECT * FROM {table}_r")
    result = resumed(policy, stopped(policy, "verify", monkeypatch))
    assert result.resumed is not None
    assert result.resumed.reused
    assert result.subject.persons == 4
    assert database.sql(f"SELECT * FROM {table}_r") == expected
    cleared(database, policy)


def test_streams_refuse_persons_and_pseudonyms_by_name() -> None:
    database = Database("duckdb:///t.duckdb", None, "")
    policy = database.policy("t", ROLES, subject="who", algorithm={"name": "condensation"})
    problems = " ".join(stream_problems(policy, "job"))
    assert "subject: a stream counts rows" in problems
    assert "attributes.who: a stream releases no row of anybody" in problems
