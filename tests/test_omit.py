"""The role omit, on both engines: columns are left out, and nothing else is asked of them, whatever they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sqlanon
from sqlanon.api.calls import check_policy
from sqlanon.errors import PolicyError
from sqlanon.inquiries.questions.ask import ask
from sqlanon.methods.clustering.stream_plan import stream_problems
from sqlanon.methods.clustering.streams import release_job, update_job
from sqlanon.methods.differential_privacy.granting import grant_budget
from sqlanon.policy.loading import build_policy, parse_stored
from sqlanon.policy.schema import policy_schema
from sqlanon.policy.writer import policy_text
from tests.cli.support import call
from tests.hiding_support import hide, hiding_policy
from tests.jobs_support import carry_out, frozen
from tests.private_support import Known, run_private
from tests.randomize_support import randomize, randomized_policy
from tests.rules_support import apply
from tests.run_support import OPTIONS, Database, Row, anonymize, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

COLUMNS = {"patient_id": "INTEGER", "age": "INTEGER", "sex": "VARCHAR(1)", "ill": "VARCHAR(9)", "tags": "INTEGER[]"}
LEFT: dict[str, Any] = {"patient_id": "omit", "tags": "omit"}
KEPT: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20]}},
    "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "ill": "sensitive",
}
K = [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}]
ALGORITHMS: tuple[dict[str, Any], ...] = (
    {"name": "mondrian"},
    {"name": "optimal"},
    {"name": "incognito"},
    {"name": "cell-generalization"},
)


def visits(first: int = 0) -> list[Row]:
    """Visits of which each person has several, by a key and a list that repeat."""
    return [
        (i % 20, 20 + i * 7 % 40, "fm"[i % 2], ("flu", "cold", "none")[i % 3], [i % 4, 1]) for i in range(first, 120)
    ]


def bare(rows: list[Row]) -> list[Row]:
    return [row[1:4] for row in rows]


BARE = {name: COLUMNS[name] for name in KEPT}


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda one: one["name"])
def test_a_release_is_that_of_a_table_without_the_column(database: Database, algorithm: dict[str, Any]) -> None:
    both = database.create(COLUMNS, visits()), database.create(BARE, bare(visits()))
    asked: dict[str, Any] = {"privacy": K, "algorithm": algorithm}
    if algorithm["name"] == "cell-generalization":
        asked["privacy"] = K[:1]
    assert database.release(both[0], LEFT | KEPT, **asked) == database.release(both[1], KEPT, **asked)
    policy = database.policy(both[0], LEFT | KEPT, **asked)
    assert check_policy(policy).repetition.columns == ()


def test_the_check_lists_it_and_asks_nothing_of_it(database: Database) -> None:
    table = database.create(COLUMNS, visits())
    plan = check_policy(database.policy(table, LEFT | KEPT, privacy=K))
    assert (plan.identifiers, plan.omitted) == ((), ("patient_id", "tags"))
    assert not [warning for warning in plan.warnings if "patient_id" in warning or "tags" in warning]
    with pytest.raises(PolicyError, match="'patient_id' repeats"):
        check_policy(database.policy(table, LEFT | KEPT | {"patient_id": "identifier"}, privacy=K))
    with pytest.raises(PolicyError, match="its role must be identifier, not omit"):
        check_policy(database.policy(table, LEFT | KEPT, privacy=K, subject="patient_id"))


def test_no_statement_of_a_run_reads_it(database: Database) -> None:
    """A view whose columns that are left out end any statement that reads them is released, frozen and verified."""
    table = database.create(BARE, bare(visits()))
    fails = "error('read')" if database.engine == "duckdb" else "1 / (age - age)"
    database.sql(f"CREATE VIEW v AS SELECT {fails} AS patient_id, t.*, {fails} AS tags FROM {table} AS t")
    policy = database.policy("v", LEFT | KEPT, privacy=K[:1], trust="owner")
    run = anonymize(policy).run
    frozen(database, run, procedure=False)
    assert carry_out(database)["published"]


def test_jobs_and_rules_leave_it_out(database: Database) -> None:
    table = database.create(COLUMNS, visits())
    run = anonymize(database.policy(table, LEFT | KEPT, privacy=K[:1])).run
    frozen(database, run)
    assert carry_out(database)["published"]
    fresh = database.create({**COLUMNS, "phone": "VARCHAR(9)"}, [(*row, "1") for row in visits(30)])
    known = database.policy(fresh, LEFT | KEPT | {"phone": "omit"}, privacy=K[:1])
    apply(database, run, fresh, f"{fresh}_out", known=known)
    assert [name for name, _ in database.columns(f"{fresh}_out")] == list(KEPT)


def test_randomized_and_hidden_releases_leave_it_out(database: Database) -> None:
    table = database.create(COLUMNS, visits())
    roles = LEFT | {"age": "insensitive", "sex": "insensitive", "ill": "insensitive"}
    noisy = randomized_policy(database, table, roles, {"age": {"noise": "uniform", "half-width": 5}})
    randomize(noisy)
    assert [name for name, _ in database.columns(noisy.release.table or "")] == list(KEPT)
    refused = {"tags": {"noise": "uniform", "half-width": 5}}
    with pytest.raises(PolicyError, match=r"left out of the release \(role: omit\)"):
        randomized_policy(database, table, roles, refused)
    rules = [{"if": {"sex": "f"}, "then": {"ill": "flu"}}]
    hidden = hiding_policy(
        database, table, KEPT, rules, roles=LEFT, algorithm={"name": "hide-rules"}, release={"table": f"{table}_h"}
    )
    hide(hidden)
    assert [name for name, _ in database.columns(f"{table}_h")] == list(KEPT)


def test_questions_are_not_about_it(database: Database) -> None:
    """An omitted column may be a condition of nobody's question, and is measured by none."""
    table = database.create(COLUMNS, visits())
    policy = database.policy(table, LEFT | KEPT, privacy=K[:1])
    assert ask(policy, "count(*) where age between 20 and 39", OPTIONS).value == "60"
    for question in ("count(*) where patient_id <= 9", "sum(patient_id)", "sum(tags)"):
        with pytest.raises(PolicyError, match=r"patient_id|tags"):
            ask(policy, question, OPTIONS)


def test_streams_keep_nothing_of_it(database: Database) -> None:
    table = database.create(COLUMNS, visits())
    roles = LEFT | {"age": "quasi-identifier", "sex": "omit", "ill": "omit"}
    policy = database.policy(table, roles, privacy=K[:1], algorithm={"name": "condensation"})
    update_job(policy, "stream", table, OPTIONS)
    kept = {name for name, _ in database.columns("sqlanon.condensed_stream")}
    assert not {name for name in kept for column in COLUMNS if column in name and column != "age"}
    release_job(policy, "stream", options=OPTIONS)
    assert [name for name, _ in database.columns(f"{table}_r")] == ["age"]


def test_noisy_counts_leave_it_out(database: Database) -> None:
    table = database.create(COLUMNS, visits())
    ill = {"role": "quasi-identifier", "values": ["flu", "cold", "none"]}
    private = database.policy(
        table,
        LEFT | {"age": "omit", "sex": "omit", "ill": ill},
        privacy=[{"model": "differential-privacy", "epsilon": 1}],
        algorithm={"name": "contingency"},
        budget={"ledger": "people"},
    )
    grant_budget(private, 2, "a test")
    run_private(private, mechanisms=Known())
    assert [name for name, _ in database.columns(private.release.table or "")] == ["ill", "count"]


def test_other_keys_do_not_go_with_it() -> None:
    for key in ({"nulls": "refuse"}, {"show": "surrogate"}, {"hierarchy": "suppress"}, {"values": ["a"]}):
        with pytest.raises(PolicyError, match=r"attributes\.tags"):
            build_policy(_data({"tags": {"role": "omit"} | key}))


def _data(attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "source": {"url": "duckdb:///x.duckdb", "table": "t"},
        "release": {"table": "r"},
        "attributes": {"age": {"role": "quasi-identifier"}, **attributes},
        "privacy": K[:1],
        **more,
    }


def test_it_is_stored_and_known_to_editors() -> None:
    policy = build_policy(_data({"tags": {"role": "omit"}}))
    assert parse_stored(policy_text(policy)) == policy
    assert "omit" in str(policy_schema())
    stream = build_policy(_data({"tags": {"role": "omit"}}, algorithm={"name": "condensation"}))
    assert list(stream_problems(stream, "nightly")) == []


def test_a_frame_is_released_without_it() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(bare(visits()), columns=list(KEPT)).assign(notes=[{"a": 1}] * 120)
    roles = {name: {"role": role} if isinstance(role, str) else role for name, role in KEPT.items()}
    policy = {"attributes": {**roles, "notes": {"role": "omit"}}, "privacy": K}
    assert list(sqlanon.anonymize(frame.drop(columns="notes").assign(notes="x"), policy).df()) == list(KEPT)


def test_a_dbt_project_names_no_omitted_column(database_url: str, tmp_path: Path) -> None:
    with open_database(database_url) as database:
        table = database.create(COLUMNS, visits())
        run = anonymize(database.policy(table, LEFT | KEPT, privacy=K[:1])).run
    project = tmp_path / "project"
    made = call("export", run, "--as", "dbt", "--name", "kept", "-o", project, "--url", database_url)
    assert made.exit_code == 0, made.output
    written = {path: path.read_text(encoding="utf-8") for path in project.rglob("*") if path.is_file()}
    assert written
    assert [path.name for path, text in written.items() for name in LEFT if name in text] == []
