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
from sqlanon.verification.verdict import Verification
from sqlanon.verification.verify import verify_table
from tests.jobs_support import carry_out, frozen, replaced
from tests.rules_support import apply
from tests.run_support import Database, Row, anonymize

pytestmark = pytest.mark.slow

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


@pytest.mark.either_engine
def test_one_starred_row_is_refused(database: Database) -> None:
    """One starred row shows HIV to all who know the person of the arctic: the policy must allow such a release."""
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(ProtectionError):
        anonymize(policy_of(database, table, "star", algorithm={"name": "optimal", "limits": {"place": [0, 0]}}))
    assert database.leftovers() == []
    assert f"{table}_r" not in [name for (name,) in database.sql("SELECT table_name FROM information_schema.tables")]


@pytest.mark.either_engine
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
    assert outcome.release.suppressed == 7
    assert outcome.as_json()["release"]["classes"] == 2
    assert outcome.as_json()["starred"] == {"rows": 7, "unprotected": False, "violate": [], "note": None}
    diverse = [K3, {"model": "distinct-l-diversity", "attribute": "disease", "l": 1}]
    policy = policy_of(database, table, "star", suppression=0.6, privacy=diverse)
    assert anonymize(policy, replace=True).release.suppressed == 7


NUMBERS = {"n": "INTEGER", "s": "VARCHAR(1)"}
NUMBER_ROLES: dict[str, Any] = {"n": "quasi-identifier", "s": "sensitive"}


def numbers(*classes: int) -> list[Row]:
    """So many rows for each class of three numbers, whose sensitive values are its own."""
    return [(10 * place + row % 3, "abcdef"[place]) for place, rows in enumerate(classes) for row in range(rows)]


@pytest.fixture
def tree_run(database: Database) -> str:
    """A run whose tree has four classes of three rows."""
    table = database.create(NUMBERS, numbers(3, 3, 3, 3))
    policy = database.policy(table, NUMBER_ROLES, privacy=[K3], suppressed="star", suppression=0.5)
    run = anonymize(policy).run
    assert len({n for n, _ in database.sql(f"SELECT * FROM {table}_r")}) == 4
    return run


@pytest.mark.either_engine
def test_others_join_the_rows_that_rules_of_a_tree_star(database: Database, tree_run: str) -> None:
    """The smallest class, not the first: one row of its own would be read by whom it fits."""
    newer = database.create(NUMBERS, numbers(1, 5, 4, 3))
    outcome = apply(database, tree_run, newer, f"{newer}_r")
    released = database.sql(f"SELECT * FROM {newer}_r")
    assert sorted(sensitive for n, sensitive in released if n == "*") == ["a", "d", "d", "d"]
    assert outcome.release.suppressed == 4
    assert outcome.as_json()["starred"]["violate"] == []


@pytest.mark.either_engine
def test_rows_that_nothing_may_join_are_refused(database: Database, tree_run: str) -> None:
    """Within the budget, or at all: one class at least is released."""
    newer = database.create(NUMBERS, numbers(1, 5, 4, 3))
    with pytest.raises(ProtectionError, match=r"1 of 13 rows .* no other classes .* 20 %") as error:
        apply(database, tree_run, newer, f"{newer}_r", budget=0.2)
    assert "nothing was published" in str(error.value)
    alone = database.create(NUMBERS, numbers(1, 5, 0, 0))
    with pytest.raises(ProtectionError, match="no other classes can join them"):
        apply(database, tree_run, alone, f"{alone}_r", "suppress")
    names = [name for (name,) in database.sql("SELECT table_name FROM information_schema.tables")]
    assert not {f"{newer}_r", f"{alone}_r"} & {*names}
    assert database.leftovers() == []


@pytest.mark.either_engine
def test_jobs_complete_or_refuse_them(database: Database, tree_run: str) -> None:
    """A job that applies rules stars others within its budget, or leaves the old release; no procedure has stars."""
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        run = catalog.run(tree_run)
    source, release = run.source, f"{run.source.rpartition('.')[2].strip(chr(34))}_r"
    if database.engine == "postgres":
        for more in ({}, {"on_violation": "suppress", "budget": 0.5}):
            with pytest.raises(PolicyError, match="suppressed: star"):
                frozen(database, tree_run, **more)
    frozen(database, tree_run, procedure=False)
    replaced(database, source, numbers(1, 5, 4, 3))
    assert carry_out(database)["release"]["suppressed"] == 4
    before = sorted(database.sql(f"SELECT * FROM {release}"))
    assert [sensitive for n, sensitive in before if n == "*"] == ["a", "d", "d", "d"]
    replaced(database, source, numbers(1, 5, 6, 7))
    frozen(database, tree_run, procedure=False, on_violation="suppress", budget=0.3)
    with pytest.raises(ProtectionError, match="no other classes can join them within the budget of 30 %"):
        carry_out(database)
    assert sorted(database.sql(f"SELECT * FROM {release}")) == before


@pytest.mark.either_engine
def test_enough_starred_rows_may_be_too_far_from_all_others(database: Database) -> None:
    """With the smallest class two of five rows are z, of two in twenty; with the next one, two of eleven."""
    table = database.create(NUMBERS, [(10 * place + row % 3, "abc"[row % 3]) for place in range(4) for row in range(6)])
    models = [K3, {"model": "t-closeness", "attribute": "s", "t": 0.2, "distance": "equal"}]
    run = anonymize(database.policy(table, NUMBER_ROLES, privacy=models, suppressed="star", suppression=0.5)).run
    sizes = {10: 3, 20: 6, 30: 9}
    rows = [(first + row % 3, "abc"[row % 3]) for first, many in sizes.items() for row in range(many)]
    newer = database.create(NUMBERS, [(0, "z"), (1, "z"), *rows])
    with pytest.raises(ProtectionError, match="no other classes can join them"):
        apply(database, run, newer, f"{newer}_r", budget=0.5)
    assert apply(database, run, newer, f"{newer}_r", budget=0.6).release.suppressed == 11


PLACES = {"p": ["r", "*"], "q": ["r", "*"], "n": ["n", "*"], "s": ["s", "*"], "a": ["a", "*"]}


@pytest.mark.either_engine
@pytest.mark.parametrize(("suppression", "starred"), [(0.4, 5), (0.2, None)])
def test_others_join_what_passes_leave(database: Database, suppression: float, starred: int | None) -> None:
    """p and q satisfy k together, in the second pass; the row of a is left, and the smallest class joins it: r."""
    rows = [("n", 1)] * 6 + [("s", 2)] * 7 + [("p", 3)] * 2 + [("q", 4)] * 2 + [("a", 5)]
    table = database.create({"place": "VARCHAR(1)", "disease": "INTEGER"}, rows)
    roles = {"place": {"role": "quasi-identifier", "hierarchy": {"mapping": PLACES}}, "disease": "sensitive"}
    policy = database.policy(
        table,
        roles,
        privacy=[K3],
        algorithm={"name": "optimal", "quality": "height", "limits": {"place": [0, 1]}},
        remainder="recode",
        suppression=suppression,
        suppressed="star",
    )
    if starred is None:
        with pytest.raises(ProtectionError, match="no further classes can join"):
            anonymize(policy)
        assert database.leftovers() == []
        return
    outcome = anonymize(policy)
    released = database.sql(f"SELECT * FROM {table}_r")
    assert sorted(s for place, s in released if place == "*") == [3, 3, 4, 4, 5]
    assert outcome.release.suppressed == starred
    assert outcome.as_json()["algorithm"]["passes"] == [
        {"levels": {"place": 0}, "rows": 13},
        {"levels": {"place": 1}, "rows": 0},
    ]
    assert apply(database, outcome.run, table, f"{table}_again").release.suppressed == starred
    assert sorted(database.sql(f"SELECT * FROM {table}_again")) == sorted(released)


@pytest.mark.either_engine
def test_unprotected_rows_are_counted_and_said_to_be(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = policy_of(database, table, UNPROTECTED)
    outcome = anonymize(policy)
    result = outcome.as_json()
    assert sorted(database.sql(f"SELECT * FROM {table}_r")) == [("*", "HIV"), *ROWS[:12]]
    assert result["release"]["min_class_size"] == 1
    assert result["risk"]["prosecutor_max"] == 1
    assert result["release"]["class_sizes"][0] == {"lower": 1, "upper": 1, "classes": 1, "rows": 1}
    note = "UNPROTECTED: 1 suppressed row, shown as one class, which violates k-anonymity."
    assert result["starred"] == {"rows": 1, "unprotected": True, "violate": ["k-anonymity"], "note": note}
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        assert note in render(collect(catalog, outcome.run))
    assert verified(database, policy, exempt=True).note == note
    assert verified(database, policy, exempt=True).satisfied
    strict = verified(database, policy)
    assert not strict.satisfied
    assert strict.fails_by_stars_alone


@pytest.mark.either_engine
def test_rules_that_star_too_few_rows_are_refused(database: Database) -> None:
    table = database.create(COLUMNS, ROWS[:12])
    run = anonymize(policy_of(database, table, "star")).run
    newer = database.create(COLUMNS, ROWS)
    with pytest.raises(ProtectionError, match="more than the budget allows"):
        apply(database, run, newer, f"{newer}_r", budget=0.1)
    assert apply(database, run, newer, f"{newer}_r").release.suppressed == 7
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
