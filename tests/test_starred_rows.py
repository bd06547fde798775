"""Suppressed rows that are shown with stars are a class that a reader sees: judged, or counted and said to be open."""

from __future__ import annotations

from typing import Any

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.models import models_of
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy, parse_stored
from sqlanon.policy.writer import policy_text
from sqlanon.report.material import collect
from sqlanon.report.page import render
from sqlanon.sql import Relation
from sqlanon.verification.verify import Verification, verify_table
from tests.rules_support import apply
from tests.run_support import Database, Row, anonymize

COLUMNS = {"place": "VARCHAR(9)", "disease": "VARCHAR(9)"}
ROWS: list[Row] = [("north", "flu")] * 6 + [("south", "cold")] * 6 + [("arctic", "HIV")]
GROUPS = {"north": "*", "south": "*", "arctic": "*"}
ROLES: dict[str, Any] = {"place": {"role": "quasi-identifier", "hierarchy": "suppress"}, "disease": "sensitive"}
K3 = {"model": "k-anonymity", "k": 3}
UNPROTECTED = {"star": "unprotected"}


def policy_of(database: Database, table: str, suppressed: Any, **more: Any) -> Policy:
    wanted = {"privacy": [K3], "algorithm": {"name": "optimal", "quality": "height"}, "suppression": 0.1}
    return database.policy(table, ROLES, suppressed=suppressed, **wanted | more)


def verified(database: Database, policy: Policy, **more: Any) -> Verification:
    with connect(database.url) as engine:
        table = Relation.parse(policy.release.table or "")
        return verify_table(engine, table, ["place"], models_of(policy), suppressed_label="*", **more)


def test_one_starred_row_is_refused(database: Database) -> None:
    """Who knows the one person of the arctic would read HIV: it is published only if the policy says so."""
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(ProtectionError):
        anonymize(policy_of(database, table, "star", algorithm={"name": "optimal", "limits": {"place": [0, 0]}}))
    assert database.leftovers() == []
    assert f"{table}_r" not in [name for (name,) in database.sql("SELECT table_name FROM information_schema.tables")]


def test_others_join_the_starred_rows(database: Database) -> None:
    """Whole classes, the smallest first, within the budget: the six of the south, not the seven of the north."""
    rows = [("north", "flu")] * 7 + ROWS[6:]
    table = database.create(COLUMNS, rows)
    outcome = anonymize(policy_of(database, table, "star", suppression=0.6))
    assert sorted(database.sql(f"SELECT * FROM {table}_r")) == [
        *[("*", "HIV")],
        *[("*", "cold")] * 6,
        *[("north", "flu")] * 7,
    ]
    assert outcome.suppressed == 7
    assert outcome.as_json()["release"]["classes"] == 2
    assert outcome.as_json()["starred"] == {"rows": 7, "unprotected": False, "violate": [], "note": None}
    diverse = [K3, {"model": "distinct-l-diversity", "attribute": "disease", "l": 1}]
    assert anonymize(policy_of(database, table, "star", suppression=0.6, privacy=diverse), replace=True).suppressed == 7


def test_unprotected_rows_are_counted_and_said_to_be(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = policy_of(database, table, UNPROTECTED)
    outcome = anonymize(policy)
    result = outcome.as_json()
    assert sorted(database.sql(f"SELECT * FROM {table}_r")) == [("*", "HIV"), *ROWS[:12]]
    assert result["release"]["min_class_size"] == 1
    assert result["risk"]["prosecutor_max"] == 1
    assert result["release"]["class_sizes"][0] == {"lower": 1, "upper": 1, "classes": 1, "rows": 1}
    note = "UNPROTECTED: 1 suppressed rows, shown as one class, which violate k-anonymity."
    assert result["starred"] == {"rows": 1, "unprotected": True, "violate": ["k-anonymity"], "note": note}
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        assert note in render(collect(catalog, outcome.run))
    assert verified(database, policy, exempt=True).note == note
    assert verified(database, policy, exempt=True).satisfied
    strict = verified(database, policy)
    assert not strict.satisfied
    assert strict.fails_by_stars_alone


def test_rules_that_star_too_few_rows_are_refused(database: Database) -> None:
    table = database.create(COLUMNS, ROWS[:12])
    run = anonymize(policy_of(database, table, "star")).run
    newer = database.create(COLUMNS, ROWS)
    with pytest.raises(ProtectionError, match="more than the budget allows"):
        apply(database, run, newer, f"{newer}_r", budget=0.1)
    assert apply(database, run, newer, f"{newer}_r").suppressed == 7
    database.sql(f"DROP TABLE {newer}_r")
    lax = anonymize(policy_of(database, table, UNPROTECTED), replace=True).run
    assert apply(database, lax, newer, f"{newer}_r").as_json()["starred"]["unprotected"]


def test_what_suppressed_says(database: Database) -> None:
    policy = policy_of(database, "t", UNPROTECTED)
    assert policy.stars
    assert policy.exempts_stars
    assert parse_stored(policy_text(policy)) == policy
    assert not policy_of(database, "t", "star").exempts_stars
    assert not policy_of(database, "t", "omit").stars
    data = policy.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    with pytest.raises(PolicyError, match="suppressed must be one of"):
        build_policy({**data, "suppressed": {"star": "open"}})
