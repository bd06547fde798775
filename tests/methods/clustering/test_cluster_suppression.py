"""Clusters that are left out within the budget, as they violate a model, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.methods.clustering.search.microaggregation import suppress_violating
from sqlanon.sql import Statement
from tests.methods.clustering.test_microaggregation import EXACT, QUASI, anonymity
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.either_engine

DISTINCT = {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}


@pytest.mark.parametrize(("budget", "suppressed"), [(0.0, set()), (0.25, {30, 31}), (0.5, {30, 31, 20, 21})])
def test_the_most_remote_violating_clusters_are_suppressed_within_the_budget(
    database: Database, budget: float, suppressed: set[int]
) -> None:
    rows = [
        (0, "a", 0),
        (1, "b", 1),
        (9, "a", 10),
        (10, "b", 11),
        (40, "c", 20),
        (41, "c", 21),
        (99, "d", 30),
        (100, "d", 31),
        (-60, "a", 40),  # the most remote of all, which violates nothing
        (-59, "b", 41),
    ]
    table = database.create({"q": "INTEGER", "ill": "VARCHAR", "number": "INTEGER"}, rows)
    roles = {"q": QUASI, "ill": "sensitive", "number": "insensitive"}
    policy = database.policy(table, roles, algorithm=EXACT, privacy=[*anonymity(2), DISTINCT], suppression=budget)
    result = anonymize(policy)
    assert all(model.satisfied for model in result.models)
    assert result.release.suppressed == len(suppressed)
    released = database.sql(f"SELECT * FROM {table}_r")
    assert {row[-1] for row in released} == {row[-1] for row in rows} - suppressed


def test_clusters_without_which_the_rest_would_violate_a_model_are_merged(database: Database) -> None:
    rows = [(0, "a"), (1, "a"), (50, "b"), (51, "b"), (99, "a"), (100, "a")]
    table = database.create({"q": "INTEGER", "ill": "VARCHAR"}, rows)
    policy = database.policy(
        table, {"q": QUASI, "ill": "sensitive"}, algorithm=EXACT, privacy=[*anonymity(2), DISTINCT], suppression=0.7
    )
    result = anonymize(policy)
    assert result.release.suppressed == 0
    assert all(model.satisfied for model in result.models)


def test_more_rows_left_out_than_the_budget_allows_are_not_published(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(0, "a"), (1, "b"), (9, "a"), (10, "b"), (99, "d"), (100, "d")]
    table = database.create({"q": "INTEGER", "ill": "VARCHAR"}, rows)
    policy = database.policy(
        table, {"q": QUASI, "ill": "sensitive"}, algorithm=EXACT, privacy=[*anonymity(2), DISTINCT], suppression=0.2
    )
    result = anonymize(policy)  # one cluster violates the model, and is merged
    assert result.release.suppressed == 0
    assert all(model.satisfied for model in result.models)
    suppress: Any = suppress_violating
    place = "sqlanon.methods.clustering.search.microaggregation.suppress_violating"
    monkeypatch.setattr(place, lambda *given: suppress(*given[:-1], 2))
    with pytest.raises(VerificationError, match="rows_add_up"):
        anonymize(policy, replace=True)


@pytest.mark.either_engine
def test_a_row_that_no_check_sees_is_a_violation(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table = database.create({"q": "INTEGER"}, [(number,) for number in range(8)])
    run = Engine.run

    def lose(engine: Engine, sent: str, /, **values: Any) -> Any:
        done = run(engine, sent, **values)
        if sent == "methods/clustering/search/create_witness":
            engine.execute(Statement("test", f"DELETE FROM {values['witnessed']} WHERE r0 < 2"))
        return done

    monkeypatch.setattr(Engine, "run", lose)
    with pytest.raises(VerificationError, match="centres_true"):
        anonymize(database.policy(table, {"q": QUASI}, algorithm=EXACT, privacy=anonymity(2)))


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"suppressed": "star"}, "suppressed: star shows `\\*` in place of values, and microaggregation shows centres"),
        ({"suppression": 0.1}, "suppression: microaggregation leaves no rows out under t-closeness"),
    ],
)
def test_suppression_that_clusters_do_not_have_is_refused(
    database: Database, more: dict[str, Any], problem: str
) -> None:
    table = database.create({"q": "INTEGER", "ill": "VARCHAR"}, [(number, "ab"[number % 2]) for number in range(9)])
    close = {"model": "t-closeness", "attribute": "ill", "t": 0.5, "distance": "equal"}
    policy = database.policy(
        table, {"q": QUASI, "ill": "sensitive"}, algorithm=EXACT, privacy=[*anonymity(2), close], **more
    )
    with pytest.raises(PolicyError, match=problem):
        anonymize(policy)
