"""NULL of a sensitive attribute in l-diversity: nothing, a value, or refused, wherever classes are checked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.jobs.dbt.project import project_files
from sqlanon.jobs.freezing import Freezing
from sqlanon.models import DistinctLDiversity, EntropyLDiversity, PrivacyModel, RecursiveLDiversity, models_of
from sqlanon.policy.loading import build_policy, parse_policy, parse_stored
from sqlanon.policy.writer import policy_text
from sqlanon.report.material import collect
from sqlanon.report.page import render
from sqlanon.sql import Relation
from sqlanon.verification.verdict import Verification
from sqlanon.verification.verify import verify_table
from tests.jobs_support import carry_out, frozen, replaced
from tests.rules_support import apply
from tests.run_support import Database, Row, anonymize

pytestmark = pytest.mark.slow

COLUMNS = {"age": "INTEGER", "disease": "VARCHAR(9)"}
LADDER = {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20]}}
HALF_KNOWN: list[Row] = [(1, "HIV")] * 4 + [(2, None)] * 2
"""Six rows that are 2-diverse only if NULL is a value."""
DIVERSE: list[Row] = [*HALF_KNOWN, *[(3, "flu")] * 4]

MODELS: list[dict[str, Any]] = [
    {"model": "distinct-l-diversity", "attribute": "disease", "l": 2},
    {"model": "entropy-l-diversity", "attribute": "disease", "l": 1.5},
    {"model": "recursive-l-diversity", "attribute": "disease", "c": 4, "l": 2},
]


def roles(nulls: str | None, age: Any = "quasi-identifier") -> dict[str, Any]:
    return {"age": age, "disease": {"role": "sensitive"} | ({} if nulls is None else {"nulls": nulls})}


def verified(database: Database, table: str, *models: PrivacyModel) -> Verification:
    with connect(database.url) as engine:
        return verify_table(engine, Relation.parse(table), ["age"], models)


@pytest.mark.either_engine
@pytest.mark.parametrize("algorithm", ["mondrian", "rothko-t", "rothko-s", "optimal", "top-down"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["model"])
def test_null_adds_no_diversity(database: Database, model: dict[str, Any], algorithm: str) -> None:
    """A class of HIV and NULL is not diverse; where NULL is a value, it is."""
    table = database.create(COLUMNS, HALF_KNOWN)
    age: Any = LADDER if algorithm in ("optimal", "top-down") else "quasi-identifier"
    more = {"privacy": [model], "algorithm": {"name": algorithm}}
    with pytest.raises(ProtectionError):
        anonymize(database.policy(table, roles(None, age), **more))
    with pytest.raises(ProtectionError):
        anonymize(database.policy(table, roles("nothing", age), **more))
    policy = database.policy(table, roles("value", age), **more)
    outcome = anonymize(policy)
    assert any("NULL counts as a value" in warning for warning in outcome.warnings)
    assert verified(database, f"{table}_r", *models_of(policy)).satisfied
    assert not verified(database, f"{table}_r", *models_of(database.policy(table, roles(None, age), **more))).satisfied


@pytest.mark.parametrize("algorithm", ["mondrian", "rothko-s", "optimal"])
def test_classes_are_as_large_as_they_must_be(database: Database, algorithm: str) -> None:
    """HIV and NULL are merged with flu, although NULL alone would do were it a value."""
    table = database.create(COLUMNS, DIVERSE)
    age: Any = {"role": "quasi-identifier", "hierarchy": {"intervals": [1, 2, 8]}}
    age = age if algorithm == "optimal" else "quasi-identifier"
    policy = database.policy(table, roles(None, age), privacy=MODELS[:1], algorithm={"name": algorithm})
    outcome = anonymize(policy)
    assert not any("NULL" in warning for warning in outcome.warnings)
    assert len({shown for shown, _ in database.sql(f"SELECT * FROM {table}_r")}) == 1
    assert outcome.models[0].worst == 2


def test_tables_of_others_are_judged_alike(database: Database) -> None:
    table = database.create(COLUMNS, [(1, "HIV")] * 4 + [(1, None)] * 2 + [(2, None)] * 3)
    strict = [DistinctLDiversity("disease", 1), EntropyLDiversity("disease", 1.0), RecursiveLDiversity("disease", 9, 2)]
    found = verified(database, table, *strict).models
    assert [(result.worst, result.violations) for result in found] == [(0, 1), (1, 0), (None, 2)]
    assert verified(database, table, DistinctLDiversity("disease", 1, counts_null=True)).models[0].worst == 1


@pytest.mark.either_engine
def test_nulls_that_are_refused_are_refused_before_any_work(database: Database) -> None:
    known = database.create(COLUMNS, DIVERSE[:4] + DIVERSE[6:])
    policy = database.policy(known, roles("refuse"), privacy=MODELS[:1])
    run = anonymize(policy).run
    newer = database.create(COLUMNS, DIVERSE)
    with pytest.raises(PolicyError, match=r"attributes\.disease: 2 rows hold NULL, which the policy refuses"):
        anonymize(database.policy(newer, roles("refuse"), privacy=MODELS[:1]))
    with pytest.raises(PolicyError, match=r"disease.*NULL"):
        apply(database, run, newer, f"{newer}_r", "suppress")
    frozen(database, run)
    replaced(database, known, DIVERSE)
    with pytest.raises(Exception, match=r"disease.*NULL"):
        carry_out(database)


@pytest.mark.either_engine
def test_rules_are_applied_and_jobs_judge_as_their_run_did(database: Database) -> None:
    """New rows that are 2-diverse only with NULL are refused, or released where NULL is a value."""
    for nulls, is_value in ((None, False), ("value", True)):
        table = database.create(COLUMNS, [(1, "HIV"), (1, "flu"), (1, "flu")] * 2)
        run = anonymize(database.policy(table, roles(nulls), privacy=MODELS)).run
        newer = database.create(COLUMNS, [(1, "HIV")] * 4 + [(1, None)] * 2)
        frozen(database, run, name=f"job_{is_value}".lower(), on_violation="error")
        replaced(database, table, [(1, "HIV")] * 4 + [(1, None)] * 2)
        if is_value:
            assert apply(database, run, newer, f"{newer}_r", "error").release.suppressed == 0
            carry_out(database, "job_true")
            assert len(database.sql(f"SELECT * FROM {table}_r")) == 6
        else:
            with pytest.raises(ProtectionError):
                apply(database, run, newer, f"{newer}_r", "error")
            with pytest.raises(Exception, match=r"violat|protect"):
                carry_out(database, "job_false")
            assert (1, None) not in database.sql(f"SELECT * FROM {table}_r")


@pytest.mark.either_engine
def test_a_run_of_before_keeps_its_meaning(database: Database) -> None:
    """A stored policy that does not say what NULL is had it as a value: so do its rules, exports and record."""
    table = database.create(COLUMNS, HALF_KNOWN)
    run = anonymize(database.policy(table, roles("value"), privacy=MODELS[:1])).run
    database.sql("""UPDATE sqlanon.runs SET policy = replace(policy, '"nulls": "value"', '"nulls": "nothing"')""")
    newer = database.create(COLUMNS, [(1, "HIV")] * 4 + [(1, None)] * 2)
    with pytest.raises(ProtectionError):
        apply(database, run, newer, f"{newer}_r", "error")
    stored = database.sql("SELECT policy FROM sqlanon.runs WHERE id = ?", [run])[0][0]
    before = json.loads(stored)
    del before["attributes"]["disease"]["nulls"]
    database.sql("UPDATE sqlanon.runs SET policy = ?", [json.dumps(before)])
    assert apply(database, run, newer, f"{newer}_r", "error").release.suppressed == 0
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        files = project_files(engine, catalog, catalog.run(run), Freezing(name="recoded"))
        page = render(collect(catalog, run))
    assert not any("a.s <> 0" in text for text in files.values())
    assert "NULL counts as a value." in page


@pytest.mark.either_engine
def test_what_null_is_goes_into_dbt_and_reports(database: Database) -> None:
    table = database.create(COLUMNS, DIVERSE)
    run = anonymize(database.policy(table, roles(None), privacy=MODELS[:1])).run
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        files = project_files(engine, catalog, catalog.run(run), Freezing(name="recoded"))
        page = render(collect(catalog, run))
    assert any("a.s <> 0" in text for text in files.values())
    assert "NULL adds no diversity." in page


POLICY: dict[str, Any] = {
    "source": {"url": "duckdb:///a.duckdb", "table": "t"},
    "release": {"table": "r"},
    "attributes": {"q": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}},
    "privacy": [{"model": "distinct-l-diversity", "attribute": "s", "l": 2}],
}


def test_the_default_is_stored() -> None:
    policy = build_policy(POLICY)
    assert policy.attributes["s"].nulls == "nothing"
    assert json.loads(policy_text(policy))["attributes"]["s"] == {"role": "sensitive", "nulls": "nothing"}
    assert parse_stored(policy_text(policy)) == parse_policy(policy_text(policy)) == policy
    older = parse_stored(json.dumps(POLICY))
    assert older.attributes["s"].nulls == "value"
    assert [model.counts_null for model in models_of(older)] == [True]  # type: ignore[attr-defined]
    assert parse_stored(policy_text(older)) == older


@pytest.mark.parametrize(
    ("column", "nulls", "problem"),
    [
        ("s", "allow", "attributes.s allows NULL: say whether it counts"),
        ("q", "nothing", "attributes.q has nulls: nothing, which an attribute with role quasi-identifier"),
        ("q", "value", "attributes.q has nulls: value"),
    ],
)
def test_what_null_is_must_fit_the_role(column: str, nulls: str, problem: str) -> None:
    attributes = {**POLICY["attributes"], column: {**POLICY["attributes"][column], "nulls": nulls}}
    with pytest.raises(PolicyError, match=problem):
        build_policy({**POLICY, "attributes": attributes})
