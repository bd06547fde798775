"""Jobs on both engines: versions, the choice about violations, releases by other rules."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import ConflictError, PolicyError, ProtectionError
from sqlanon.jobs.freezing import Freezing, freeze
from sqlanon.policy.writer import policy_text
from sqlanon.sql import Relation
from sqlanon.work.workspace import release_lock
from tests.jobs_support import (
    ALONE,
    COLUMNS,
    ROLES,
    K,
    carry_out,
    frozen,
    linked,
    released,
    replaced,
    runs,
    simple,
    table,
)
from tests.rules_support import apply
from tests.run_support import Database, Row, anonymize, open_database


@pytest.mark.either_engine
def test_a_violation_leaves_the_old_release(database: Database) -> None:
    name, run = simple(database)
    frozen(database, run)
    assert carry_out(database)["published"]
    before = database.sql(f"SELECT * FROM {name}_r")
    replaced(database, name, [*table(2, 5, 3), ALONE])
    with pytest.raises(ProtectionError, match="nothing was published"):
        carry_out(database)
    assert database.sql(f"SELECT * FROM {name}_r") == before
    failed, passed = runs(database)
    assert (failed.status, failed.error_class, passed.status) == ("refused", "ProtectionError", "published")
    assert failed.job == "nightly"


@pytest.mark.either_engine
def test_classes_are_suppressed_within_the_budget(database: Database) -> None:
    name, run = simple(database)
    frozen(database, run, on_violation="suppress", budget=0.1)
    replaced(database, name, [*table(1, 120, 0), ALONE])
    result = carry_out(database)
    assert result["release"]["suppressed"] == 1
    assert len(database.sql(f"SELECT * FROM {name}_r")) == 120
    before = database.sql(f"SELECT * FROM {name}_r")
    frozen(database, run, on_violation="suppress", budget=0.001)
    with pytest.raises(ProtectionError, match="more than the budget"):
        carry_out(database)
    assert database.sql(f"SELECT * FROM {name}_r") == before


@pytest.mark.either_engine
def test_as_many_rows_as_the_budget_says_may_be_suppressed(database: Database) -> None:
    name, run = simple(database)
    frozen(database, run, on_violation="suppress", budget=0.016)
    rows = table(1, 120, 0)
    replaced(database, name, [*rows, *rows[:3], ALONE, ALONE])
    release = carry_out(database)["release"]
    assert (release["rows"], release["suppressed"]) == (123, 2)
    replaced(database, name, [*rows, *rows[:2], ALONE, ALONE])
    with pytest.raises(ProtectionError, match=r"2 of 124 rows .* more than the budget"):
        carry_out(database)


TAXONOMY = {
    "mapping": {"a": ["v", "1"], "b": ["v", "1"], "C": ["v", "1"], "dd": ["w", "2"], "e,f": ["w", "2"]},
}


@pytest.mark.either_engine
def test_values_that_no_rule_knows_end_a_job_or_are_suppressed(database: Database) -> None:
    name = database.create({**COLUMNS, "z": "VARCHAR(9)"}, table(1, 120, 0))
    roles = {**ROLES, "t": {"role": "quasi-identifier", "hierarchy": TAXONOMY}}
    run = anonymize(database.policy(name, roles, privacy=[K])).run
    day = datetime.date(2024, 1, 1)
    odd: list[Row] = [(5, "a", day, "1234", "a", 1), (5, "it's", day, "12x", "b", 2), (7, "?", day, "12345", "b", 2)]
    replaced(database, name, [*table(1, 120, 0), *odd])
    frozen(database, run)
    with pytest.raises(PolicyError, match=r"mask|mapping"):
        carry_out(database)
    frozen(database, run, on_violation="suppress", budget=0.02)
    with pytest.raises(ProtectionError, match=r"3 of 123 rows hold values that no rule knows.* more than the budget"):
        carry_out(database)
    frozen(database, run, on_violation="suppress", budget=0.1)
    result = carry_out(database)
    assert (result["source"]["rows"], result["release"]["rows"], result["release"]["suppressed"]) == (123, 120, 3)
    replaced(database, name, table(1, 120, 0))
    carry_out(database)
    complete = released(database, f"{name}_r")
    replaced(database, name, [*odd[:2], *table(1, 120, 0), ALONE])
    assert carry_out(database)["release"]["suppressed"] == 3  # one of them for its class
    assert released(database, f"{name}_r") == complete
    replaced(database, name, odd)
    frozen(database, run, on_violation="suppress", budget=1)
    with pytest.raises(ProtectionError, match="No rule is about any of these rows"):
        carry_out(database)
    assert released(database, f"{name}_r") == complete
    assert database.leftovers() == []


@pytest.mark.either_engine
def test_what_the_policy_refuses_is_never_suppressed(database: Database) -> None:
    whole = [row for row in table(1, 120, 0) if row[0] is not None]
    name = database.create(COLUMNS, whole)
    roles = {**ROLES, "n": {"role": "quasi-identifier", "nulls": "refuse"}}
    frozen(database, anonymize(database.policy(name, roles, privacy=[K])).run, on_violation="suppress", budget=0.5)
    replaced(database, name, [*whole, (None, "a", datetime.date(2024, 1, 1), "12x", "a", 1)])
    with pytest.raises(PolicyError, match="NULL"):
        carry_out(database)


@pytest.mark.either_engine
def test_another_run_at_the_same_release_is_a_conflict(database: Database) -> None:
    name, run = simple(database)
    frozen(database, run)
    with connect(database.url) as engine:
        release = engine.resolve(Relation(f"{name}_r"))
        assert release is not None
        with release_lock(engine, release), pytest.raises(ConflictError, match="Another run is writing"):
            carry_out(database)
    assert carry_out(database)["published"]


def test_freezing_again_makes_another_version_and_a_downgrade_removes_jobs(database: Database) -> None:
    _, run = simple(database)
    assert [frozen(database, run).version for _ in range(2)] == [1, 2]
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        catalog.downgrade("0002")
    if database.engine == "postgres":
        assert database.sql("SELECT proname FROM pg_proc WHERE proname LIKE 'job%'") == []
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        assert catalog.jobs() == []


@pytest.mark.either_engine
def test_releases_by_other_rules_are_told_or_refused(database: Database) -> None:
    name, run = simple(database)
    frozen(database, run)
    assert linked(carry_out(database)["warnings"]) == []
    stricter = [{"model": "k-anonymity", "k": 5}]
    other = anonymize(database.policy(name, ROLES, privacy=stricter), replace=True).run
    (warning,) = linked(carry_out(database)["warnings"])
    assert f"Run {other} released" in warning
    with pytest.raises(PolicyError, match="republish: same-recoding"):
        anonymize(database.policy(name, ROLES, privacy=[K], republish="same-recoding"), replace=True)


@pytest.mark.either_engine
@pytest.mark.parametrize("republish", ["allow", "same-recoding"])
def test_equal_rules_of_another_run_are_the_same_rules(database: Database, republish: str) -> None:
    name, _ = simple(database)
    again = anonymize(database.policy(name, ROLES, privacy=[K]), replace=True).run
    wanted = policy_text(database.policy(name, ROLES, privacy=[K], republish=republish))
    database.sql("UPDATE sqlanon.runs SET policy = ? WHERE id = ?", [wanted, again])
    frozen(database, again)
    for _ in range(2):
        assert linked(carry_out(database)["warnings"]) == []


@pytest.mark.either_engine
def test_digests_of_an_older_kind_do_not_say_that_rules_are_the_same(database: Database) -> None:
    name, run = simple(database)
    again = anonymize(database.policy(name, ROLES, privacy=[K]), replace=True).run
    database.sql("UPDATE sqlanon.releases SET digest = replace(digest, 'rules-1:', 'rules-0:')")
    assert len(database.sql("SELECT DISTINCT digest FROM sqlanon.releases")) == 1
    frozen(database, again)
    (warning,) = linked(carry_out(database)["warnings"])
    assert f"Run {run} released" in warning


@pytest.mark.either_engine
def test_a_job_goes_on_after_another_recoding_was_allowed(database: Database) -> None:
    name, run = simple(database, republish="same-recoding")
    frozen(database, run)
    assert linked(carry_out(database)["warnings"]) == []
    stricter = [{"model": "k-anonymity", "k": 5}]
    other = anonymize(database.policy(name, ROLES, privacy=stricter, republish="allow"), replace=True).run
    (warning,) = linked(carry_out(database)["warnings"])
    assert f"Run {other} released" in warning


@pytest.mark.either_engine
def test_a_job_can_be_frozen_of_a_run_that_applied_rules(database: Database) -> None:
    name, run = simple(database, republish="same-recoding")
    applied = apply(database, run, name, f"{name}_r", replace=True).run
    before = released(database, f"{name}_r")
    for frozen_run in (applied, apply(database, applied, name, f"{name}_r", replace=True).run):
        frozen(database, frozen_run)
        result = carry_out(database)
        assert result["algorithm"]["applied"] == run
        assert linked(result["warnings"]) == []
    assert released(database, f"{name}_r") == before


def test_a_job_is_not_frozen_for_another_table_than_was_released(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        _, run = simple(database)
        with connect(database.url) as engine, Catalog.open(engine) as catalog:
            found = dataclasses.replace(catalog.run(run), source='"elsewhere"."t"')
            with pytest.raises(PolicyError, match=r'released "elsewhere"\."t", and the table of its policy is'):
                freeze(engine, catalog, found, Freezing("nightly"))


def test_pg_cron_is_not_left_to_call_a_procedure_of_older_rules(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        _, run = simple(database)
        frozen(database, run)
        with connect(database.url) as engine, Catalog.open(engine) as catalog:
            catalog.set_schedule("nightly", "0 2 * * *", "pg_cron")
        with pytest.raises(PolicyError, match="unschedule nightly"):
            frozen(database, run, procedure=False)
        assert frozen(database, run).version == 2


@pytest.mark.either_engine
def test_what_is_wanted_must_make_sense(database: Database) -> None:
    _, run = simple(database)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"name": "Nightly job"}, "lower-case letters"),
        ({"on_violation": "suppress"}, "give --budget"),
        ({"budget": 0.1}, "is for --on-violation suppress"),
    ]
    for wanted, problem in wrong:
        with pytest.raises(PolicyError, match=problem):
            frozen(database, run, **wanted)
