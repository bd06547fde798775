"""Full-domain generalization of what can't be generalized: each mistake is named, with the remedy; on both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqlanon import explore
from sqlanon.errors import PolicyError, ProtectionError, SqlanonError
from sqlanon.policy import Policy
from tests.run_support import OPTIONS, Database, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

COLUMNS = {"q": "VARCHAR(80)", "p": "INTEGER", "s": "VARCHAR(3)"}
ROWS = [("abcd"[i % 4], i % 5, "xyz"[i % 3]) for i in range(40)]
TREE = {"a": ["low", "*"], "b": ["low", "*"], "c": ["high", "*"], "d": ["high", "*"]}
ROLES: dict[str, Any] = {
    "q": {"role": "quasi-identifier", "hierarchy": {"mapping": TREE}},
    "p": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "s": "sensitive",
}


def _policy(database: Database, rows: list[tuple[Any, ...]] = ROWS, **more: Any) -> Policy:
    attributes = more.pop("attributes", ROLES)
    table = database.create(COLUMNS, rows)
    return database.policy(table, attributes, **{"algorithm": {"name": "optimal", "quality": "height"}} | more)


def _refused(policy: Policy, kind: type[SqlanonError]) -> str:
    """Check that a run and an exploration refuse a policy with the same message, and return the message."""
    with pytest.raises(kind) as ran:
        anonymize(policy)
    with pytest.raises(kind) as explored:
        explore(policy, options=OPTIONS)
    assert str(ran.value) == str(explored.value)
    return str(ran.value)


# --- hierarchies


@pytest.mark.parametrize("lines", ["a;low\nb;low\nc;high\nd;high\n", "a;low;*\nb;low;*\nc;high;*\nd;high;*\n"])
def test_a_hierarchy_that_does_not_end_in_one_value_gets_a_level_more(
    database: Database, tmp_path: Path, lines: str
) -> None:
    (tmp_path / "q.csv").write_text(lines)
    attributes = {**ROLES, "q": {"role": "quasi-identifier", "hierarchy": {"csv": str(tmp_path / "q.csv")}}}
    found = explore(_policy(database, attributes=attributes), everything=True, options=OPTIONS)
    assert found.as_json()["heights"] == [2, 1]
    assert found.lattice.size == 3 * 2


def test_an_attribute_needs_a_hierarchy(database: Database) -> None:
    text = _refused(_policy(database, attributes={**ROLES, "p": "quasi-identifier"}), PolicyError)
    assert "attributes.p: optimal generalizes by hierarchies" in text
    assert "hierarchy: suppress" in text


def test_a_policy_of_another_algorithm_is_told_why_it_needs_hierarchies(database: Database) -> None:
    bare = {**ROLES, "q": "quasi-identifier", "p": "quasi-identifier"}
    policy = _policy(database, attributes=bare, algorithm={"name": "mondrian"})
    with pytest.raises(PolicyError) as raised:
        explore(policy, options=OPTIONS)
    assert [problem.split(":")[0] for problem in raised.value.problems] == ["attributes.q", "attributes.p"]
    assert all("give it one" in problem for problem in raised.value.problems)
    (note,) = raised.value.__notes__
    assert "mondrian, does not search it, so optimal does" in note


def test_a_hierarchy_of_more_levels_than_codes_have_bits(database: Database) -> None:
    rows = [("a" * i + "b" * (64 - i), 1, "x") for i in range(64)]
    attributes = {**ROLES, "q": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}}}
    text = _refused(_policy(database, rows, attributes=attributes), PolicyError)
    assert "'q'" in text
    assert "bits, and 62 are there" in text


# --- limits and weights


@pytest.mark.parametrize("limits", [{"q": [0, 3]}, {"q": [3, 4]}, {"q": [1, 3], "p": [2, 2]}])
def test_limits_beyond_a_hierarchy_are_named_all_at_once(database: Database, limits: dict[str, Any]) -> None:
    algorithm = {"name": "optimal", "quality": "height", "limits": limits}
    text = _refused(_policy(database, algorithm=algorithm), PolicyError)
    assert "algorithm.limits.q: its hierarchy has levels 0 to 2 on this table" in text
    assert "name levels up to 2" in text
    assert ("algorithm.limits.p" in text) == ("p" in limits)


def test_the_height_of_a_mask_is_that_of_the_longest_value(database: Database) -> None:
    """Limits that fit another table are refused, not cut to this one: they would mean something else."""
    rows = [(text, 1, "x") for text in ("abc", "abd", "xyz", "xy")]
    attributes = {**ROLES, "q": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}}}
    algorithm = {"name": "optimal", "quality": "height", "limits": {"q": [1, 5]}}
    text = _refused(_policy(database, rows, attributes=attributes, algorithm=algorithm), PolicyError)
    assert "levels 0 to 3 on this table, not 1 to 5" in text


def test_weights_and_limits_of_unknown_attributes(database: Database) -> None:
    algorithm = {"name": "optimal", "weights": {"pp": 2}, "limits": {"s": [0, 1]}}
    text = _refused(_policy(database, algorithm=algorithm), PolicyError)
    assert "algorithm.weights.pp: it is not a quasi-identifier; did you mean 'p'?" in text
    assert "algorithm.limits.s: it is not a quasi-identifier" in text


# --- no generalization


@pytest.mark.parametrize("algorithm", ["incognito", "samarati", "bottom-up", "optimal", "datafly"])
def test_what_fails_at_the_top_and_what_would_do(database: Database, algorithm: str) -> None:
    rows = [("a", i % 2, "xyz"[i % 3]) for i in range(30)] + [("c", 1, "x"), ("d", 0, "x"), ("d", 0, "y")]
    given = {"name": algorithm, "quality": "height", "limits": {"q": [0, 1]}}
    text = _refused(
        _policy(database, rows, algorithm=given, privacy=[{"model": "k-anonymity", "k": 5}]), ProtectionError
    )
    assert "No generalization satisfies the models within the suppression budget (0 of 33 rows)." in text
    assert "The most general one, q=1,p=1: k-anonymity (k: 5) fails for 3 rows." in text
    assert "would have to suppress 3 of 33 rows: suppression: 0.0910 would do." in text
    assert "algorithm.limits hold q to level 1; higher limits may do." in text
    released = anonymize(
        _policy(database, rows, algorithm=given, privacy=[{"model": "k-anonymity", "k": 5}], suppression=0.091)
    )
    assert released.release.suppressed == 3


def test_a_model_that_no_table_of_these_values_satisfies(database: Database) -> None:
    privacy = [{"model": "distinct-l-diversity", "attribute": "s", "l": 4}]
    text = _refused(_policy(database, privacy=privacy, suppression=0.1), ProtectionError)
    assert "Attainable: l: 3." in text
    assert "no suppression would do" in text


def test_each_model_that_fails_is_told(database: Database) -> None:
    privacy = [{"model": "k-anonymity", "k": 30}, {"model": "distinct-l-diversity", "attribute": "s", "l": 3}]
    algorithm = {"name": "optimal", "quality": "height", "limits": {"q": [0, 1], "p": [1, 1]}}
    text = _refused(_policy(database, privacy=privacy, algorithm=algorithm), ProtectionError)
    assert "k-anonymity (k: 30) fails for 40 rows" in text
    assert "distinct-l-diversity" not in text


def test_refusals_hold_no_values(database: Database) -> None:
    rows = [("secret", i, "x") for i in range(3)]
    attributes = {**ROLES, "q": {"role": "quasi-identifier", "hierarchy": "suppress"}}
    policy = _policy(
        database,
        rows,
        attributes=attributes,
        privacy=[{"model": "k-anonymity", "k": 3}],
        algorithm={"name": "optimal", "quality": "height", "limits": {"p": [0, 0]}},
    )
    assert "secret" not in _refused(policy, ProtectionError)
    assert database.leftovers() == []


# --- many


def test_more_quasi_identifiers_than_words_have_bits(database: Database) -> None:
    columns = {f"c{i}": "INTEGER" for i in range(63)}
    table = database.create(columns, [tuple(range(63))] * 3)
    star = {"role": "quasi-identifier", "hierarchy": "suppress"}
    policy = database.policy(table, dict.fromkeys(columns, star), algorithm={"name": "optimal"})
    assert "at most 62 can be searched" in _refused(policy, PolicyError)


@pytest.mark.parametrize("algorithm", ["incognito", "bottom-up"])
def test_a_huge_lattice_is_refused_before_it_is_searched(database: Database, algorithm: str) -> None:
    columns = {f"c{i}": "INTEGER" for i in range(40)}
    table = database.create(columns, [tuple(range(40))] * 3)
    star = {"role": "quasi-identifier", "hierarchy": "suppress"}
    policy = database.policy(table, dict.fromkeys(columns, star), algorithm={"name": algorithm})
    text = _refused(policy, PolicyError)
    assert f"The lattice has {2**40:,} generalizations, and {algorithm} may have to look at every one" in text


# --- weights


def test_an_attribute_of_weight_0_leaves_the_choice_to_the_others(database: Database) -> None:
    policy = _policy(database, algorithm={"name": "optimal", "weights": {"q": 0}})
    assert explore(policy, options=OPTIONS).optimum.score == 0


def test_weights_must_not_all_be_0(database: Database) -> None:
    message = _refused(_policy(database, algorithm={"name": "optimal", "weights": {"q": 0, "p": 0.0}}), PolicyError)
    assert message.startswith("algorithm.weights: at least one quasi-identifier needs a weight above 0")


# --- large lattices


@pytest.mark.parametrize("quality", ["aecs", "discernibility", "kl-divergence"])
def test_a_lattice_that_no_memory_holds_is_searched_by_datafly_or_for_so_long(
    database: Database, quality: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"q{number}" for number in range(10)]
    tree = {"a": ["low", "some", "any", "*"], "b": ["high", "some", "any", "*"]}
    table = database.create(dict.fromkeys(names, "VARCHAR(9)"), [("a",) * 10, ("b",) * 10] * 3)
    roles = {name: {"role": "quasi-identifier", "hierarchy": {"mapping": tree}} for name in names}
    datafly, optimal = (
        database.policy(table, roles, algorithm={"name": name, "quality": quality}) for name in ("datafly", "optimal")
    )
    message = _refused(optimal, PolicyError)
    assert message.startswith(f"The lattice has {5**10:,} generalizations, and of more than 5,000,000 optimal may not")
    assert anonymize(datafly).algorithm.levels == dict.fromkeys(names, 0)
    monkeypatch.setattr(
        "sqlanon.methods.generalization.lattice.optimal.LARGEST_HELD", 1000
    )  # of its levels, those that merge something
    assert anonymize(optimal, time_limit=60, replace=True).algorithm.levels == dict.fromkeys(names, 0)
