"""Repairs: classes are merged until all releases about the same people hold together, or the release is refused."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon import run
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.policy import Policy
from sqlanon.policy.writer import policy_text
from sqlanon.results.run_result import RunResult
from tests.accounts.test_accounts import (
    COLUMNS,
    PEOPLE,
    ROLES,
    Classes,
    State,
    classes_of,
    expected,
    fill,
    groups_of,
    kept,
    nights,
    person,
    policy_of,
)
from tests.accounts.test_increments import ALGORITHMS, LEVELS
from tests.cli.support import call
from tests.jobs_support import carry_out, frozen
from tests.persons_support import CASES
from tests.rules_support import apply, listed
from tests.run_support import Database, Row, anonymize

KINDS: dict[str, dict[str, Any]] = {
    "mondrian": {},
    "cuts": {"ranges": "cuts"},
    "levels": {**ALGORITHMS["optimal"], "suppression": 0},
    "suppressing": {**ALGORITHMS["optimal"], "suppression": 0.3},
}


def of_kind(database: Database, table: str, mode: str, kind: str, **more: Any) -> Policy:
    given = {**KINDS[kind], **more}
    attributes = given.pop("attributes", ROLES)
    made = policy_of(database, table, mode, **given)
    return database.policy(table, attributes, release={"table": made.release.table}, **_kept_parts(made, given))


def _kept_parts(made: Policy, given: dict[str, Any]) -> dict[str, Any]:
    history = {"history": {"mode": made.history.mode}} if made.history.is_kept else {}
    return {"privacy": [one.shown() for one in made.privacy], "subject": "who", **history, **given}


def require_union(finer: Classes, coarser: Classes) -> None:
    """Each class of the finer release is within one of the coarser one, which has all its persons."""
    within: dict[Row, set[Row]] = defaultdict(set)
    for one, shown in finer.items():
        within[shown].add(coarser[one])
    assert all(len(classes) == 1 for classes in within.values())


def sets_of(classes: Classes) -> set[frozenset[int]]:
    """The persons of each class."""
    return {frozenset(persons) for persons in groups_of([classes]).values()}


def count_classes(classes: Classes) -> int:
    return len(set(classes.values()))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4, **CASES)
@given(states=nights())
def test_a_repaired_release_holds_with_all_earlier_ones(
    database: Database, kind: str, states: list[tuple[State, bool]]
) -> None:
    """By brute force: it holds, its classes are unions of those before, and it is refused where one class fails too."""
    table, releases = database.create(COLUMNS, []), list[Classes]()
    plain, policy = of_kind(database, table, "none", kind), of_kind(database, table, "refresh", kind)
    rules: tuple[str, str] | None = None
    for state, applies in states:
        fill(database, table, state)
        try:
            if applies and rules is not None:
                apply(database, rules[0], table, f"{table}_plain", replace=True)
            else:
                found = anonymize(plain, replace=True).run
        except ProtectionError:
            continue
        unrepaired = classes_of(database, f"{table}_plain")
        holds, _ = expected([*releases, unrepaired], state)
        before = kept(database) if releases else []
        try:
            if applies and rules is not None:
                result = apply(database, rules[1], table, f"{table}_r", replace=True, repair=True)
            else:
                result = anonymize(policy, replace=True, repair=True)
        except ProtectionError:
            assert not holds
            assert set(unrepaired) != set(state) or not expected([*releases, dict.fromkeys(state, ("all",))], state)[0]
            assert not releases or (kept(database), classes_of(database, f"{table}_r")) == (before, releases[-1])
            continue
        released = classes_of(database, f"{table}_r")
        assert expected([*releases, released], state)[0]
        require_figures(result, unrepaired, released, holds=holds)
        if kind != "suppressing":
            require_union(unrepaired, released)
        releases.append(released)
        if rules is None and not applies:
            rules = (found, result.run) if holds else None
    assert database.leftovers() == []


def require_figures(result: RunResult, unrepaired: Classes, released: Classes, *, holds: bool) -> None:
    assert result.history is not None
    figures = result.history.repaired
    if holds:
        assert (figures, released) == (None, unrepaired)
        return
    assert figures is not None
    assert (figures.classes_before, figures.classes) == (count_classes(unrepaired), count_classes(released))
    assert result.release.classes == figures.classes


def moved(at: int = 16) -> State:
    """The people of the accounts' tests with other ages, so that other classes are found of them."""
    return {n: person(n, 20 + (n * 7) % at, "ab"[n // 8], ["flu", "rash"][n % 2]) for n in range(16)}


def swapped() -> State:
    """The same people, four of whom have each other's ages."""
    other = {8: 12, 9: 13, 12: 8, 13: 9}
    return {n: person(n, 20 + other.get(n, n) // 4, "ab"[n // 8], ["flu", "rash"][n % 2]) for n in range(16)}


def two_tables(database: Database, state: State, mode: str = "refresh", **more: Any) -> tuple[str, Policy, Classes]:
    """A table whose people another one has released, its policy, and that release."""
    first = database.create(COLUMNS, list(PEOPLE.values()))
    anonymize(policy_of(database, first, "refresh", people="ours"))
    table = database.create(COLUMNS, [])
    fill(database, table, state)
    return table, policy_of(database, table, mode, people="ours", **more), classes_of(database, f"{first}_r")


def test_classes_are_merged_only_where_they_divide_earlier_groups(database: Database) -> None:
    """One half of the people is cut as before, the other otherwise: only the other's classes are merged."""
    state = swapped()
    table, policy, earlier = two_tables(database, state)
    with pytest.raises(ProtectionError):
        anonymize(policy)
    result = anonymize(policy, repair=True)
    released = classes_of(database, f"{table}_r")
    assert result.history is not None
    assert result.history.repaired is not None
    assert (result.history.repaired.classes_before, result.history.repaired.classes) == (4, 3)
    assert sets_of(released) == {
        frozenset(range(4)),
        frozenset(range(4, 8)),
        frozenset(range(8, 16)),
    }
    assert expected([earlier, released], state)[0]
    assert not any("by other rules" in one for one in result.warnings)


STORED = {
    **{kind: KINDS[kind] for kind in ("mondrian", "cuts", "levels")},
    "gain": {"algorithm": {"name": "rothko-t", "split": "information-gain", "target": "signature"}},
    "sampled": {"algorithm": {"name": "rothko-s", "sample": 8, "exact_below": 0}},
}


@pytest.mark.parametrize("kind", STORED)
def test_what_is_published_is_what_is_stored(database: Database, kind: str) -> None:
    """The rules of a repaired run make its release again, in another table, by a job and where it is adopted."""
    state = moved() if kind != "levels" else swapped()
    first = database.create(COLUMNS, list(PEOPLE.values()))
    anonymize(policy_of(database, first, "refresh", people="ours"))
    table = database.create(COLUMNS, [])
    fill(database, table, state)
    repaired = anonymize(of_stored(database, table, kind), repair=True)
    assert repaired.history is not None
    assert repaired.history.repaired is not None
    released = classes_of(database, f"{table}_r")
    if kind != "levels":
        assert len(listed(database, repaired.run)) == count_classes(released)
    apply(database, repaired.run, table, f"{table}_again")
    assert sets_of(classes_of(database, f"{table}_again")) == sets_of(released)
    assert call("account", "forget", "ours", "--url", database.url, "--yes").exit_code == 0
    adopted = call("account", "adopt", repaired.run, "--url", database.url, "--json")
    assert adopted.exit_code == 0, adopted.stderr
    assert json.loads(adopted.stdout)["history"]["groups"] == count_classes(released)
    frozen(database, repaired.run, procedure=False)
    carry_out(database)
    assert sets_of(classes_of(database, f"{table}_r")) == sets_of(released)


def of_stored(database: Database, table: str, kind: str) -> Policy:
    given = {**STORED[kind], "people": "ours"}
    attributes = given.pop("attributes", ROLES)
    made = policy_of(database, table, "refresh")
    return database.policy(table, attributes, **_kept_parts(made, given))


def test_rules_that_are_applied_are_coarsened_to_rules_of_the_run(database: Database) -> None:
    """A repaired application has its own rules: what applies it, and adopts it, goes by them."""
    first = database.create(COLUMNS, list(PEOPLE.values()))
    found = anonymize(policy_of(database, first, "refresh", people="ours"))
    fill(database, first, swapped())
    with pytest.raises(ProtectionError):
        apply(database, found.run, first, f"{first}_r", replace=True)
    result = apply(database, found.run, first, f"{first}_r", replace=True, repair=True)
    released = classes_of(database, f"{first}_r")
    assert result.history is not None
    assert result.history.repaired is not None
    assert result.history.repaired.classes_before > result.history.repaired.classes == count_classes(released)
    rules = listed(database, result.run)
    assert len(listed(database, found.run)) == 4
    assert len(rules) == result.history.repaired.classes
    assert sum(rule.rows for rule in rules) == 16
    apply(database, result.run, first, f"{first}_again")
    assert classes_of(database, f"{first}_again") == released
    assert call("account", "forget", "ours", "--url", database.url, "--yes").exit_code == 0
    adopted = call("account", "adopt", result.run, "--url", database.url, "--json")
    assert adopted.exit_code == 0, adopted.stderr
    assert json.loads(adopted.stdout)["history"]["groups"] == count_classes(released)


def test_a_watched_account_is_repaired_or_warned_of(database: Database) -> None:
    table, policy, _ = two_tables(database, moved(), "watch")
    assert not [one for one in anonymize(policy, repair=True).warnings if "Together" in one]
    database.insert(table, [person(99, 21, "a", "gout")])
    result = anonymize(policy, replace=True, repair=True)
    (warning,) = [one for one in result.warnings if "Together" in one]
    assert "--repair merges classes, and can't mend this: no more than 1 person came" in warning
    assert result.history is not None
    assert result.history.repaired is None


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({**PEOPLE, 99: person(99, 21, "a", "gout")}, "no more than 1 person came, and any class shows who came"),
        ({n: PEOPLE[n] for n in range(1, 16)}, "1 person left in groups of fewer than 3"),
        ({n: PEOPLE[n] for n in [0, *range(4, 16)]}, "1 person of earlier releases would be in groups of fewer than 3"),
        ({n: person(n, *one[1:3], "flu" if n < 4 else one[3]) for n, one in PEOPLE.items()}, "4 persons would be in"),
    ],
)
def test_what_no_coarsening_mends_is_refused_and_said(database: Database, state: State, message: str) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    policy = policy_of(database, table, "refresh")
    anonymize(policy)
    before = kept(database), classes_of(database, f"{table}_r")
    fill(database, table, state)
    with pytest.raises(ProtectionError, match=f"can't mend this: .*{message}"):
        anonymize(policy_of(database, table, "refresh", privacy=_lenient()), replace=True, repair=True)
    assert (kept(database), classes_of(database, f"{table}_r")) == before


def _lenient() -> list[dict[str, Any]]:
    """Models that the table itself satisfies whatever one class has."""
    return [
        {"model": "k-anonymity", "k": 3},
        {"model": "distinct-l-diversity", "attribute": "signature", "l": 2},
    ]


def test_a_repair_goes_by_the_k_of_the_history(database: Database) -> None:
    """The models ask for fewer persons, and the groups of another account have fewer."""
    table, other = (database.create(COLUMNS, list(PEOPLE.values())) for _ in range(2))
    anonymize(policy_of(database, other, "refresh"))
    policy = policy_of(database, table, "refresh", history={"mode": "refresh", "k": 6})
    with pytest.raises(ProtectionError, match=r"16 persons among fewer than 6 .*--repair merge classes"):
        anonymize(policy)
    history = anonymize(policy, repair=True).history
    assert history is not None
    assert (history.smallest, history.groups) == (8, 2)


def test_groups_that_left_as_a_whole_are_no_hindrance(database: Database) -> None:
    _, policy, _ = two_tables(database, {n: one for n, one in swapped().items() if n > 3})
    with pytest.raises(ProtectionError, match="Together with"):
        anonymize(policy)
    history = anonymize(policy, repair=True).history
    assert history is not None
    assert history.repaired is not None
    assert (history.left, history.smallest) == (4, 4)


def test_a_release_that_holds_is_left_as_it_is(database: Database) -> None:
    """Nothing is changed: rows, their order, rules and figures are those of a run without a repair."""
    results, rows = [], []
    for repair in (False, True):
        table = database.create(COLUMNS, list(PEOPLE.values()))
        policy = policy_of(database, table, "refresh", digest="run")
        results += [anonymize(policy, repair=repair), anonymize(policy, replace=True, repair=repair)]
        rows.append(database.sql(f"SELECT * FROM {table}_r"))
    assert rows[0] == rows[1]
    digests = database.sql("SELECT DISTINCT digest, content_digest FROM sqlanon.releases")
    assert len(digests) == 1
    assert {one.history.repaired for one in results if one.history is not None} == {None}


def test_a_batch_is_repaired_where_other_releases_divide_it(database: Database) -> None:
    """Both releases are increments of tables over the same people, who come in the same two batches."""
    one, two = database.create(COLUMNS, list(PEOPLE.values())), database.create(COLUMNS, [])
    grown = policy_of(database, one, "increments", people="ours")
    anonymize(grown)
    more = {n: (f"p{n}", *PEOPLE[n - 20][1:4], n) for n in range(20, 36)}
    database.insert(one, list(more.values()))
    state = {n: (f"p{n}", *row[1:4], n) for n, row in zip(more, moved().values(), strict=True)}
    fill(database, two, state)
    anonymize(policy_of(database, two, "watch", people="ours"))  # those who are to come are released elsewhere
    before = classes_of(database, f"{one}_r")
    with pytest.raises(ProtectionError, match="Together with"):
        anonymize(grown)
    result = anonymize(grown, repair=True)
    assert result.history is not None
    assert result.history.repaired is not None
    assert "repaired, so that all of them hold together: 4 classes → " in result.history.sentence
    after = classes_of(database, f"{one}_r")
    assert {n: after[n] for n in before} == before
    assert expected([classes_of(database, f"{two}_r"), after], {**PEOPLE, **state})[1]["smallest"] >= 3


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"mode": "none"}, "no account says which releases are out"),
        ({"algorithm": {"name": "mondrian", "partitioning": "relaxed"}}, "relaxed are no nodes of a tree"),
        ({"algorithm": {"name": "top-down"}, "attributes": LEVELS}, "top-down makes no classes that can be merged"),
        ({"algorithm": {"name": "ordered-sets"}}, "ordered-sets makes no classes that can be merged"),
        ({**KINDS["suppressing"], "remainder": "recode"}, "with remainder: recode"),
    ],
)
def test_what_can_not_be_repaired_is_refused_before_any_work(
    database: Database, more: dict[str, Any], message: str
) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    given = {"attributes": ROLES, **more}
    mode, attributes = given.pop("mode", "refresh"), given.pop("attributes")
    base = policy_of(database, table, mode)
    policy = database.policy(table, attributes, **_kept_parts(base, given))
    with pytest.raises(PolicyError, match=f"--repair: .*{message}"):
        run(policy, repair=True)
    assert not database.sql("SELECT * FROM information_schema.tables WHERE table_name = 'accounts'")


def test_rules_that_show_means_are_not_repaired(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    roles = ROLES | {"age": {"role": "quasi-identifier", "show": "mean"}}
    base = policy_of(database, table, "refresh")
    found = anonymize(database.policy(table, roles, **_kept_parts(base, {})))
    with pytest.raises(PolicyError, match="--repair: 'age' is shown as a mean"):
        apply(database, found.run, table, f"{table}_r", replace=True, repair=True)
    fill(database, table, moved())
    repaired = anonymize(database.policy(table, roles, **_kept_parts(base, {})), replace=True, repair=True)
    assert repaired.history is not None
    assert repaired.history.repaired is not None


def test_groups_that_are_large_and_too_uniform_are_merged(database: Database) -> None:
    """Both releases are diverse; who is in two of their classes has one illness, until the classes are merged."""
    half = {n: person(n, 20 + n // 8, "a", ["flu", "rash", "rash", "flu"][n // 4]) for n in range(16)}
    privacy = [{"model": "k-anonymity", "k": 8}, {"model": "distinct-l-diversity", "attribute": "signature", "l": 2}]
    first, table = database.create(COLUMNS, list(half.values())), database.create(COLUMNS, [])
    history = {"mode": "refresh", "k": 3}
    anonymize(policy_of(database, first, "refresh", people="ours", privacy=privacy, history=history))
    state = {n: (one[0], 20 + n // 4 % 2, *one[2:]) for n, one in half.items()}
    fill(database, table, state)
    policy = policy_of(database, table, "refresh", people="ours", privacy=privacy, history=history)
    with pytest.raises(ProtectionError, match=r"one shows groups of persons that violate distinct-l-diversity"):
        anonymize(policy)
    result = anonymize(policy, repair=True)
    assert result.history is not None
    assert result.history.repaired is not None
    assert (result.history.repaired.classes_before, result.history.repaired.classes) == (2, 1)


def test_levels_that_a_way_up_raised_for_nothing_are_lowered(database: Database) -> None:
    """The ages cost less, and are raised first; only without the towns do both releases hold, with ages as they are."""
    first, table = database.create(COLUMNS, []), database.create(COLUMNS, [])
    fill(database, first, {n: person(n, 20 + 6 * (n > 7), "a", ["flu", "rash"][n % 2]) for n in range(16)})
    anonymize(policy_of(database, first, "refresh", people="ours"))
    towns = ["b" if 6 <= n <= 10 else "a" for n in range(16)]
    fill(database, table, {n: person(n, 20 + 6 * (n > 10), towns[n], ["flu", "rash"][n % 2]) for n in range(16)})
    policy = of_kind(database, table, "refresh", "levels", people="ours")
    before = anonymize(of_kind(database, table, "none", "levels", people="theirs")).algorithm.facts
    after = anonymize(policy, repair=True).algorithm.facts
    assert (before.levels, after.levels) == ({"age": 0, "to wn": 0}, {"age": 0, "to wn": 1})
    assert (after.score > before.score, after.proven) == (True, False)
    assert after.checked > before.checked + 2


@st.composite
def drawn_levels(draw: st.DrawFn) -> tuple[State, list[int]]:
    """People, and how the ages of a second table are turned."""
    row = st.tuples(st.integers(20, 28), st.sampled_from(["a", "b"]), st.sampled_from(["flu", "rash"]))
    state = {n: person(n, *draw(row)) for n in range(draw(st.integers(9, 14)))}
    return state, draw(st.permutations(range(len(state))))


@settings(max_examples=6, **CASES)
@given(drawn=drawn_levels())
def test_no_level_could_be_lower(database: Database, drawn: tuple[State, list[int]]) -> None:
    """Every generalization between the one that was found and the repaired one violates what both releases tell."""
    state, turned = drawn
    first, table = database.create(COLUMNS, list(state.values())), database.create(COLUMNS, [])
    try:
        anonymize(policy_of(database, first, "refresh", people=first))
        fill(database, table, {n: person(n, *state[m][1:4]) for n, m in enumerate(turned)})
        policy = of_kind(database, table, "refresh", "levels", people=first)
        result = anonymize(policy, repair=True)
    except ProtectionError:
        return
    assert result.history is not None
    levels = result.algorithm.facts.levels
    if result.history.repaired is None:
        return
    for name in levels:
        lower = levels | {name: levels[name] - 1}
        if levels[name]:
            with pytest.raises(ProtectionError):
                anonymize(policy.model_copy(update={"people": first}), levels=lower, replace=True)


DATED = {
    "Person Id": "INTEGER",
    "Born": "DATE",
    'pa"id': "DECIMAL(8, 2)",
    "ward": "VARCHAR(5)",
    "Ill": "VARCHAR(9)",
}


def test_the_command_repairs_releases_of_other_columns(database: Database, tmp_path: Path) -> None:
    """Dates, decimals, NULLs and quoted names; another k, other quasi-identifiers, a view over the same people."""
    rows: list[Row] = [
        (
            n,
            None if n == 7 else f"19{60 + n % 9}-0{1 + n % 5}-11",
            None if n == 9 else n * 1.25,
            "ab"[n % 2],
            "xyz"[n % 3],
        )
        for n in range(40)
    ]
    table = database.create(DATED, rows)
    database.sql(f'CREATE VIEW "{table} View" AS SELECT * FROM {table}')
    quasi = {"role": "quasi-identifier"}
    one = {"Person Id": "identifier", "Born": quasi, 'pa"id': "omit", "ward": "omit", "Ill": "sensitive"}
    two = one | {"Born": "omit", 'pa"id': quasi, "ward": quasi}
    common: dict[str, Any] = {"subject": "Person Id", "history": {"mode": "refresh", "k": 3}, "people": "patients"}
    models = [{"model": "k-anonymity", "k": 5}, {"model": "t-closeness", "attribute": "Ill", "t": 0.6}]
    first = database.policy(table, one, **common, privacy=models)
    other = {"privacy": [{"model": "k-anonymity", "k": 3}], "release": {"table": f"{table}_o"}}
    second = database.policy(f'"{table} View"', two, **common, **other)
    files = [tmp_path / "one.yml", tmp_path / "two.yml"]
    for file, policy in zip(files, (first, second), strict=True):
        file.write_text(policy_text(policy), encoding="utf-8")
    done = call("run", files[0], "--repair")
    assert done.exit_code == 0, done.stderr
    assert call("run", files[1]).exit_code == 3
    for unfit in (["--dry-run"], ["--resume", "1"], ["--levels", "ward=1"]):
        assert "--repair does not go with" in call("run", files[1], "--repair", *unfit).stderr
    done = call("run", files[1], "--repair", "--json")
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)
    figures = result["history"]["repaired"]
    assert figures["classes_before"] > figures["classes"] == result["release"]["classes"]
    assert figures["loss_before"] < figures["loss"] == pytest.approx(result["metrics"]["gcp"])
    assert result["history"]["smallest"] >= 3
    again = call("run", files[1], "--repair", "--replace")
    assert again.exit_code == 0, again.stderr
    assert "repaired, so that" in again.stdout
    assert "loss " in again.stdout
    page = tmp_path / "page.html"
    assert call("report", result["run"], "--policy", files[1], "-o", page).exit_code == 0
    assert "repaired, so that all of them hold together" in page.read_text(encoding="utf-8")
