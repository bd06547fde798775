"""Published figures of Adult, nine quasi-identifiers, and what the searches ask of the database for them."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.generalization.lattice.incognito import IncognitoSearch
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.methods.generalization.lattice.search import SearchOptions, solve
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from tests.adult import ADULT, needs_adult, quasi_identifiers
from tests.lattice_support import build_problem

pytestmark = [needs_adult, pytest.mark.slow]
PUBLISHED = {2: (136, 32), 5: (87, 27), 10: (65, 20), 100: (22, 7)}
"""Anonymous and minimal generalizations, by k."""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog of its own: that of a release that is a file is in the current folder."""
    monkeypatch.chdir(tmp_path)


def policy_of(k: int, algorithm: dict[str, Any]) -> Policy:
    return build_policy(
        {
            "source": {"file": str(ADULT / "adult.csv")},
            "release": {"file": "unused.parquet"},
            "attributes": quasi_identifiers(),
            "privacy": [{"model": "k-anonymity", "k": k}],
            "algorithm": {"quality": "height", **algorithm},
        }
    )


@contextlib.contextmanager
def counted(k: int, algorithm: dict[str, Any]) -> Iterator[tuple[Problem, Policy, Counter[str]]]:
    """A problem over Adult, and the statements from then on, by name."""
    policy, names = policy_of(k, algorithm), Counter[str]()
    with build_problem(policy, EngineOptions()) as problem:
        problem.sets.engine.listener = lambda statement, *_: names.update([statement.name])
        yield problem, policy, names


def assert_published(findings: Findings, k: int) -> None:
    assert findings.complete
    assert (len(findings.anonymous), len(findings.minimal)) == PUBLISHED[k]


@pytest.mark.parametrize("variant", ["basic", "super-roots", "cube"])
@pytest.mark.parametrize("k", PUBLISHED)
def test_incognito_finds_the_published_generalizations(k: int, variant: str) -> None:
    with counted(k, {"name": "incognito", "variant": variant}) as (problem, policy, _):
        assert problem.lattice.size == 12_960
        assert_published(solve(problem, policy, SearchOptions()), k)
        assert problem.sets.checked < 250


def test_incognito_as_published_checks_3538_generalizations_in_few_statements() -> None:
    with counted(5, {"name": "incognito"}) as (problem, _, names):
        assert_published(IncognitoSearch(problem, "basic", infers=False).go(), 5)
        assert problem.sets.checked == 3_538
        assert names["methods/generalization/lattice/count_small_each"] < 250
        assert sum(names.values()) < 400


def test_incognito_asks_little_where_smaller_subsets_have_decided() -> None:
    with counted(5, {"name": "incognito"}) as (problem, policy, names):
        assert_published(solve(problem, policy, SearchOptions()), 5)
        assert problem.sets.checked == 162
        assert sum(names.values()) < 160


def test_a_check_is_one_statement() -> None:
    with counted(5, {"name": "incognito"}) as (problem, _, names):
        problem.sets.check(problem.lattice.bottom)
        assert sum(names.values()) == 1


def test_bottom_up_finds_the_published_generalizations() -> None:
    with counted(5, {"name": "bottom-up"}) as (problem, policy, _):
        assert_published(solve(problem, policy, SearchOptions()), 5)
        assert problem.sets.checked == 12_900


def test_samarati_and_incognito_agree_on_the_least_height() -> None:
    with counted(5, {"name": "samarati"}) as (problem, policy, _):
        lowest = solve(problem, policy, SearchOptions())
    with counted(5, {"name": "incognito"}) as (problem, policy, _):
        findings = solve(problem, policy, SearchOptions())
    height = min(map(sum, findings.anonymous))
    assert {node for node in findings.anonymous if sum(node) == height} <= lowest.anonymous
    assert lowest.chosen == findings.chosen
