"""Disclosure of sensitive values by classes of releases and of any table: on both engines as by brute force."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from sqlanon.api.calls import check_table
from sqlanon.catalog import Catalog
from sqlanon.cli.summary import disclosure_text
from sqlanon.engines import connect
from sqlanon.models.k_anonymity import KAnonymity
from sqlanon.report.material import collect
from sqlanon.report.page import render
from sqlanon.results.codec import to_json
from sqlanon.verification.release import verify_release
from tests.cli.support import call
from tests.jobs_support import carry_out, frozen, replaced
from tests.run_support import Database, Row, anonymize, open_database

pytestmark = pytest.mark.either_engine

COLUMNS = {"age": "INTEGER", "sex": "VARCHAR(1)", "disease": "VARCHAR(9)", "salary": "DOUBLE PRECISION"}
ROLES: dict[str, Any] = {
    "age": "quasi-identifier",
    "sex": "quasi-identifier",
    "disease": "sensitive",
    "salary": "sensitive",
}


def people(seed: int, rows: int = 120) -> list[Row]:
    source = random.Random(seed)
    diseases, salaries = ["flu", "flu", "cold", "HIV", None], [0.0, 1.5, 1.5, None]
    return [
        (source.choice([None, *range(6)]), source.choice("fm"), source.choice(diseases), source.choice(salaries))
        for _ in range(rows)
    ]


def by_brute_force(keys: Sequence[Any], values: Sequence[Any]) -> dict[str, Any]:
    """The figures by their definition: class by class, without rows that hold NULL."""
    classes: dict[Any, list[Any]] = defaultdict(list)
    for key, value in zip(keys, values, strict=True):
        if value is not None:
            classes[key].append(value)
    figures: dict[str, Any] = dict.fromkeys(("rows", "one_value", "above_50", "above_80", "above_95"), 0)
    surest: list[float] = []
    for held in classes.values():
        ((_, most),) = Counter(held).most_common(1)
        surest.append(most / len(held))
        figures["rows"] += len(held)
        figures["one_value"] += len(held) if len(set(held)) == 1 else 0
        for threshold in (50, 80, 95):
            figures[f"above_{threshold}"] += len(held) if 100 * most > threshold * len(held) else 0
    return figures | {"confidence": max(surest, default=None)}


def require_figures(recorded: Sequence[dict[str, Any]], rows: Sequence[Row]) -> None:
    """Hold the figures of the two sensitive columns, the last ones, against the released rows."""
    for one, place in zip(recorded, (-2, -1), strict=True):
        expected = by_brute_force([row[:-2] for row in rows], [row[place] for row in rows])
        assert one["confidence"] == pytest.approx(expected.pop("confidence"))
        assert {name: one[name] for name in expected} == expected


@pytest.mark.parametrize("suppressed", ["omit", "star"])
@pytest.mark.parametrize("algorithm", ["mondrian", "optimal"])
def test_a_run_counts_what_its_release_tells(database: Database, algorithm: str, suppressed: str) -> None:
    """Rows that are shown with a star are a class, too."""
    hierarchies: dict[str, Any] = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4]}},
        "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
    }
    table = database.create(COLUMNS, people(7))
    privacy = [{"model": "k-anonymity", "k": 9}, {"model": "distinct-l-diversity", "attribute": "salary", "l": 2}]
    more = {"algorithm": {"name": algorithm}, "suppression": 0.2, "suppressed": suppressed, "privacy": privacy}
    policy = database.policy(table, ROLES | hierarchies, **more)
    result = anonymize(policy).as_json()
    rows = database.sql(f"SELECT * FROM {policy.release.table}")
    require_figures(result["disclosure"], rows)
    assert [(one["attribute"], one["protected"]) for one in result["disclosure"]] == [
        ("disease", False),
        ("salary", True),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_verification_counts_what_a_table_tells(database_url: str, seed: int) -> None:
    rows = people(seed, 40)
    with open_database(database_url) as database:
        table = database.create(COLUMNS, rows)
    names = ["disease", "salary"]
    found = check_table(database_url, table, ["age", "sex"], [KAnonymity(1)], sensitive=names)
    require_figures(to_json(found.disclosure), rows)
    everything = check_table(database_url, table, [], [KAnonymity(1)], sensitive=names).disclosure
    require_figures(to_json(everything), [("", *row[2:]) for row in rows])


def test_verification_by_a_policy_counts_the_same(database_url: str) -> None:
    with open_database(database_url) as database:
        policy = database.policy(database.create(COLUMNS, people(3)), ROLES)
        result = anonymize(policy).as_json()
    assert to_json(verify_release(policy).disclosure) == result["disclosure"]


def test_nobody_holds_a_value(database_url: str) -> None:
    with open_database(database_url) as database:
        table = database.create(COLUMNS, [(1, "f", None, None)] * 3)
    (one,) = check_table(database_url, table, ["age"], [KAnonymity(1)], sensitive=["disease"]).disclosure
    assert (one.rows, one.one_value, one.confidence, one.above) == (0, 0, None, (0, 0, 0))
    assert "-" in disclosure_text([one])


def test_people_read_it(database: Database) -> None:
    """k = 4 holds, and half of the rows tell their value."""
    rows: list[Row] = [(1, "f", "HIV", 1.0)] * 4 + [(2, "m", value, 1.0) for value in ("flu", "cold", "HIV", "flu")]
    policy = database.policy(database.create(COLUMNS, rows), ROLES, privacy=[{"model": "k-anonymity", "k": 4}])
    result = anonymize(policy)
    text = disclosure_text(result.disclosure or ())
    assert text.splitlines()[2].split() == ["disease", "no", *["4", "(50", "%)"], "100", "%", *["4", "(50", "%)"] * 3]
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        page = render(collect(catalog, result.run))
    assert "protected by no model" in page
    assert "of the rows in classes of one value of salary" in page


def test_the_command_counts_columns_that_no_model_is_about(database_url: str) -> None:
    with open_database(database_url) as database:
        table = database.create(COLUMNS, people(1))
    arguments = ["verify", database_url, table, "--qi", "age", "--k", "1", "--sensitive", "disease", "--json"]
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    assert '"protected": false' in result.output


@pytest.mark.parametrize("on_violation", ["error", "suppress"])
def test_a_job_records_what_its_release_tells(database: Database, on_violation: Any) -> None:
    """By its procedure on PostgreSQL, by the program on DuckDB; `job show` and the report show it."""
    privacy = [{"model": "k-anonymity", "k": 5}, {"model": "distinct-l-diversity", "attribute": "salary", "l": 2}]
    policy = database.policy(database.create(COLUMNS, people(7)), ROLES, privacy=privacy)
    assert policy.source.table is not None
    budget = 0.9 if on_violation == "suppress" else None
    frozen(database, anonymize(policy).run, on_violation=on_violation, budget=budget)
    if on_violation == "suppress":
        replaced(database, policy.source.table, people(8))
    result = carry_out(database)
    require_figures(result["disclosure"], database.sql(f"SELECT * FROM {policy.release.table}"))
    assert [(one["attribute"], one["protected"]) for one in result["disclosure"]] == [
        ("disease", False),
        ("salary", True),
    ]
    shown = call("job", "show", "nightly", "--url", database.url)
    assert "rows in classes of one value" in shown.output, shown.output
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        assert "protected by no model" in render(collect(catalog, result["run"]))
