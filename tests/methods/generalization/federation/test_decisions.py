"""Releases together for which decisions alone are opened: what one database would release, and nothing else is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqlanon.errors import PolicyError, VerificationError
from sqlanon.methods.generalization.federation.comparisons import Threshold
from sqlanon.methods.generalization.federation.federation_plan import FederationPlan
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.releasing import SharedSearch
from sqlanon.methods.generalization.federation.serving import require_scope
from sqlanon.policy.loading import build_policy
from tests.methods.generalization.federation.sites import attributes
from tests.methods.generalization.federation.support import NAMES
from tests.methods.generalization.federation.threads import record, release, sites_of

pytestmark = pytest.mark.slow

DECISION = {"reveal": "decision", "most_nodes": 100}
PRECISION = {"name": "optimal", "quality": "precision"}


CASES: list[dict[str, Any]] = [
    {"suppression": 0.1, "algorithm": PRECISION},
    {
        "few": 1,  # rows of a site
        "suppression": 0.3,
        "privacy": [{"model": "k-anonymity", "k": 6}],
        "algorithm": {"name": "optimal", "quality": "height", "limits": {"age": [1, 3]}, "weights": {"age": 2}},
    },
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_sites_release_what_one_database_would(number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The levels, the rows and the verdict are the same; sizes of classes are those of each site.

    Opened are the sum of the rows, the rows in small classes of each generalization that is asked, and the classes.
    """
    opened: list[tuple[str, Any]] = []
    for name in ("sum_small", "find_large"):
        record(monkeypatch, Threshold, name, opened)
    record(monkeypatch, Party, "add", opened)
    sites = sites_of(tmp_path, number, plan=DECISION, **CASES[number])
    whole, results = sites.release_union(), release(sites)
    assert [name for name, _ in opened].count("find_large") == 3
    assert [name for name, _ in opened].count("sum_small") == 3 * results["west"].algorithm.facts.checked
    assert all(len(sums) == 1 for name, sums in opened if name == "add")
    released = {row[-1]: row for row in sites.released("union")}
    for name, result in results.items():
        facts = result.algorithm.facts
        assert facts.proven
        assert facts.levels == whole.algorithm.facts.levels  # type: ignore[union-attr]
        assert facts.score == pytest.approx(whole.algorithm.facts.score)  # type: ignore[union-attr]
        assert [(one.model, one.satisfied) for one in result.models] == [("k-anonymity", True)]
        expected = [released[row[-1]] for row in sites.rows[name] if row[-1] in released]
        assert sites.released(name) == expected
        assert result.release.rows == len(expected)
        assert result.release.min_class_size == min(classes_of(expected).values())
        assert any("this site's rows alone" in warning for warning in result.warnings)


def classes_of(rows: list[Any]) -> dict[Any, int]:
    return {row[:3]: sum(other[:3] == row[:3] for other in rows) for row in rows}


def test_no_more_is_asked_than_the_plan_allows(tmp_path: Path) -> None:
    """The search says that others may be better; the rows are those of the levels that it came to."""
    sites = sites_of(tmp_path, 3, plan={**DECISION, "most_nodes": 4}, suppression=0.2, algorithm=PRECISION)
    results = release(sites)
    facts = results["north"].algorithm.facts
    assert facts.checked == 4
    assert not facts.proven
    levels = {name: [level, level] for name, level in facts.levels.items()}
    sites.release_union(algorithm={**PRECISION, "limits": levels})
    released = {row[-1]: row for row in sites.released("union")}
    for name in NAMES:
        assert sites.released(name) == [released[row[-1]] for row in sites.rows[name] if row[-1] in released]


@pytest.mark.parametrize("keeps", [False, True])
def test_staged_releases_are_compared_without_opening_them(
    keeps: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nobody publishes if a site leaves out a class that it should keep, large as it may stay, or keeps a small one."""
    fixed = {**PRECISION, "limits": {"age": [1, 1], "sex": [1, 1], "city": [0, 0]}}  # with small classes
    sites = sites_of(tmp_path, 3, plan=DECISION, suppression=0.5, algorithm=fixed)
    sites.publish_old()
    failing = SharedSearch._failing

    def tampering(self: SharedSearch, classes: Any) -> Any:
        failed = failing(self, classes)
        if self.party.site == "west" and keeps:
            failed.pop()
        elif self.party.site == "west":
            failed.append(min((one for one in classes if one not in failed), key=lambda one: one.rows))
        return failed

    monkeypatch.setattr(SharedSearch, "_failing", tampering)
    results = release(sites)
    assert {type(error) for error in results.values()} == {VerificationError}, results
    sites.require_old()


def test_classes_that_are_too_small_are_not_published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The check of the staged classes does not trust the search, which takes all for large enough."""
    monkeypatch.setattr(Threshold, "sum_small", lambda *_: 0)
    monkeypatch.setattr(Threshold, "find_large", lambda self, own, doing: list(range(len(own))))  # noqa: ARG005
    sites = sites_of(tmp_path, 3, plan=DECISION, suppression=0.5, algorithm=PRECISION)
    sites.publish_old()
    assert {type(error) for error in release(sites).values()} == {VerificationError}
    sites.require_old()


def test_all_hear_that_no_generalization_will_do(tmp_path: Path) -> None:
    limits = {"age": [0, 0], "sex": [0, 0], "city": [0, 0]}
    sites = sites_of(tmp_path, 3, plan=DECISION, algorithm={**PRECISION, "limits": limits})
    assert {str(error).partition(" (")[0] for error in release(sites).values()} == {
        "No generalization satisfies the models within the suppression budget"
    }


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"algorithm": {"name": "optimal"}}, "algorithm.quality: loss needs counts"),
        ({"algorithm": {"name": "incognito", "quality": "height"}}, "choose optimal, not incognito"),
        ({"privacy": [{"model": "k-anonymity", "k": 7000}]}, "k may be at most 6,666 for 3 sites"),
    ],
)
def test_what_decisions_are_not_enough_for_is_refused(change: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    sites = sites_of(tmp_path, 1, algorithm=PRECISION)
    listed = {n: {"address": f"h:{7000 + i}", "certificate": n} for i, n in enumerate(NAMES)}
    for reveal in ("decision", "counts"):
        plan = FederationPlan.model_validate({"sites": listed, "reveal": reveal})
        policy = build_policy(sites.policy("north", **change))
        if reveal == "counts":
            require_scope(policy, plan)
        else:
            with pytest.raises(PolicyError, match=sentence):
                require_scope(policy, plan)


@pytest.mark.parametrize("plan", [{}, DECISION], ids=["counts", "decision"])
def test_an_omitted_column_is_in_no_site_s_release(tmp_path: Path, plan: dict[str, Any]) -> None:
    sites = sites_of(tmp_path, 4, plan=plan, suppression=0.3, algorithm=PRECISION)
    kept = {name: role for name, role in attributes().items() if name != "disease"}
    policies = {name: sites.policy(name, attributes=kept | {"disease": {"role": "omit"}}) for name in NAMES}
    results = release(sites, **policies)
    assert [result.published for result in results.values()] == [True, True, True]
    for name in NAMES:
        with sites.opened(name) as database:
            assert [column for column, _ in database.columns("released")] == list(kept)
