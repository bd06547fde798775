"""Releases that exist, held against each other: persons by their classes in all, and by the labels that cover them."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.policy.writer import policy_text
from sqlanon.report.releases_together.checking import Together, check_releases
from tests.accounts.test_accounts import COLUMNS, DIVERSITY, MODELS, PEOPLE, ROLES, K, State, kept, person, policy_of
from tests.cli.support import call
from tests.persons_support import CASES
from tests.run_support import OPTIONS, Database, Row, anonymize, quoted

SHOWN = {"age": "VARCHAR(40)", "to wn": "VARCHAR(40)", "signature": "VARCHAR(9)", "nr": "INTEGER"}
Vectors = dict[int, tuple[frozenset[Row], ...]]


def label_of_ages(ages: list[int | None]) -> str:
    known = sorted({age for age in ages if age is not None})
    if not known:
        return "NULL"
    span = str(known[0]) if len(known) == 1 else f"{known[0]}-{known[-1]}"
    if None in ages:
        return f"{{NULL, {span}}}"
    return span if len(known) == 1 else f"[{span}]"


def label_of_towns(towns: list[str | None]) -> str:
    members = (["NULL"] if None in towns else []) + sorted({town for town in towns if town is not None})
    return members[0] if len(members) == 1 else "{" + ", ".join(members) + "}"


def covers_age(label: str, age: int | None) -> bool:
    if label == "*" or (age is None and "NULL" in label):
        return True
    ends = label.strip("{}[]").removeprefix("NULL, ").split("-")
    return age is not None and label != "NULL" and int(ends[0]) <= age <= int(ends[-1])


def covers_town(label: str, town: str | None) -> bool:
    return label == "*" or (town or "NULL") in label.strip("{}").split(", ")


@st.composite
def releases_by_hand(draw: st.DrawFn) -> tuple[State, list[list[Row]]]:
    """A table, and releases of it whose classes have labels that may overlap."""
    row = st.tuples(
        st.sampled_from([None, *range(20, 27)]),
        st.sampled_from(["a", "b", "c", None]),
        st.sampled_from(["flu", "rash", "gout"]),
    )
    state = {number: person(number, *draw(row)) for number in range(draw(st.integers(4, 14)))}
    releases = []
    for _ in range(draw(st.integers(2, 3))):
        classes: dict[int, list[Row]] = defaultdict(list)
        tidy = draw(st.booleans())
        for one in state.values():
            classes[(one[1] or 0) // 3 if tidy else draw(st.integers(0, 3))].append(one)
        rows = []
        for number, members in classes.items():
            ages, towns = label_of_ages([one[1] for one in members]), label_of_towns([one[2] for one in members])
            if number == 3 and draw(st.booleans()):
                ages = towns = "*"
            rows += [(ages, towns, one[3], one[4]) for one in members]
        releases.append(rows)
    return state, releases


def vectors_of(state: State, releases: list[list[Row]]) -> Vectors:
    """The classes of each release whose labels cover a person."""
    labels = [{row[:2] for row in rows} for rows in releases]
    return {
        number: tuple(
            frozenset(one for one in shown if covers_age(one[0], row[1]) and covers_town(one[1], row[2]))
            for shown in labels
        )
        for number, row in state.items()
    }


def figures_of(vectors: dict[int, tuple[Any, ...]], places: tuple[int, ...]) -> tuple[int, int, int, int]:
    groups: dict[Any, int] = defaultdict(int)
    for vector in vectors.values():
        if any(vector[place] for place in places):
            groups[tuple(vector[place] for place in places)] += 1
    sizes = list(groups.values())
    return sum(sizes), len(sizes), min(sizes, default=0), sum(size for size in sizes if size < K)


def require_figures(checked: Together, vectors: dict[int, tuple[Any, ...]], state: State) -> None:
    """Hold every figure of a check against the groups of Python."""
    every = tuple(range(len(checked.releases)))
    names = [one.name for one in checked.releases]

    def figures(one: Any) -> tuple[int, int, int, int]:
        return one.persons, one.groups, one.smallest, one.below_k

    assert figures(checked.all_groups) == figures_of(vectors, every)
    for place in every:
        assert figures(checked.each[place]) == figures_of(vectors, (place,))
    assert len(checked.pairs) == len(every) * (len(every) - 1) // 2
    for one in checked.pairs:
        first, second = (names.index(name) for name in one.releases)
        assert figures(one) == figures_of(vectors, (first, second))
    assert [one.below_k for one in checked.pairs] == sorted((one.below_k for one in checked.pairs), reverse=True)
    values: dict[Any, set[Any]] = defaultdict(set)
    for number, vector in vectors.items():
        if any(vector):
            values[vector].add(state[number][3])
    diverse = all(len(one) >= DIVERSITY for one in values.values())
    assert [one.satisfied for one in checked.models] == [diverse]
    assert checked.satisfied is (diverse and not checked.all_groups.below_k)


@settings(max_examples=12, **CASES)
@given(made=releases_by_hand())
def test_releases_of_other_programs_are_held_against_each_other_by_their_labels(
    database: Database, made: tuple[State, list[list[Row]]]
) -> None:
    state, releases = made
    table = database.create(COLUMNS, list(state.values()))
    names = [database.create(SHOWN, rows, f"{table}_{place}") for place, rows in enumerate(releases)]
    vectors = vectors_of(state, releases)
    policy = policy_of(database, table, "none")
    possible = [sum(bool(vector[place]) for vector in vectors.values()) for place in range(len(releases))]
    assert possible == [len(state)] * len(releases)
    checked = check_releases(policy, names, OPTIONS)
    require_figures(checked, vectors, state)
    ambiguous = [sum(len(vector[place]) > 1 for vector in vectors.values()) for place in range(len(names))]
    assert [one.ambiguous for one in checked.releases] == ambiguous
    for name in (*names, table):
        database.sql(f"DROP TABLE {name}")
    assert database.leftovers() == []


RUNS: list[dict[str, Any]] = [
    {},
    {"privacy": [{"model": "k-anonymity", "k": 5}], "ranges": "cuts"},
    {"privacy": [{"model": "k-anonymity", "k": 2}]},
]


def test_runs_are_placed_by_their_rules_and_their_tables_by_labels_alike(database: Database, tmp_path: Path) -> None:
    rows = [
        *PEOPLE.values(),
        person(20, None, "a", "flu"),
        person(21, None, "a", "rash"),
        person(22, None, "b", "gout"),
    ]
    table, state = database.create(COLUMNS, rows), {row[4]: row for row in rows}
    runs, tables, files = [], [], []
    for place, more in enumerate(RUNS):
        release = {"release": {"table": f"{table}_r{place}"}}
        runs.append(anonymize(policy_of(database, table, "none", **(more | release))).run)
        tables.append(f"{table}_r{place}")
        files.append(str(tmp_path / f"r{place}.csv"))
        anonymize(policy_of(database, table, "none", **(more | {"release": {"file": files[-1]}})))
    released = [{row[-1]: row[:2] for row in database.sql(f"SELECT * FROM {name}")} for name in tables]
    vectors = {number: tuple(one.get(number) for one in released) for number in state}
    policy, before = policy_of(database, table, "none"), database.sql("SELECT count(*) FROM sqlanon.runs")
    require_figures(check_releases(policy, runs, OPTIONS), vectors, state)
    for names in (tables, files, [runs[0], tables[1], files[2]]):
        checked = check_releases(policy, names, OPTIONS)
        assert [one.persons for one in checked.releases] == [len(state)] * 3
        if not any(one.ambiguous for one in checked.releases):
            require_figures(checked, vectors, state)
    kinds = [one.kind for one in check_releases(policy, [runs[0], tables[1], files[2]], OPTIONS).releases]
    assert kinds == ["run", "table", "file"]
    assert database.sql("SELECT count(*) FROM sqlanon.runs") == before
    assert kept(database) == [[], [], []]
    assert database.leftovers() == []


def test_suppressed_rows_and_hierarchies(database: Database) -> None:
    """Rows that are left out are in no class, rows of stars may be anybody's."""
    rows = [*PEOPLE.values(), person(20, 50, "a", "flu"), person(21, 60, "b", "rash")]
    table, state = database.create(COLUMNS, rows), {row[4]: row for row in rows}
    roles = ROLES | {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4, 8]}},
        "to wn": {"role": "quasi-identifier", "hierarchy": "suppress"},
    }
    given: dict[str, Any] = {"algorithm": {"name": "optimal"}, "suppression": 0.3, "privacy": MODELS, "subject": "who"}
    names, released = [], []
    for place, stars in enumerate(("omit", "star", "omit")):
        more = given | {"suppressed": stars, "release": {"table": f"{table}_r{place}"}}
        more |= {"privacy": [{"model": "k-anonymity", "k": 4}]} if place == 2 else {}
        run = anonymize(database.policy(table, roles, **more)).run
        names.append((run, f"{table}_r{place}"))
        released.append({row[-1]: row[:2] for row in database.sql(f"SELECT * FROM {table}_r{place}")})
    policy = database.policy(table, roles, **given)
    vectors = {number: tuple(one.get(number) for one in released) for number in state}
    for chosen in ((0, 0, 0), (1, 1, 1), (0, 1, 0)):
        checked = check_releases(policy, [pair[which] for pair, which in zip(names, chosen, strict=True)], OPTIONS)
        require_figures(checked, vectors, state)


def test_the_command_tells_groups_pairs_and_models(database: Database, tmp_path: Path) -> None:
    people = {n: person(n, 20 + n, "ab"[n % 2], ["flu", "rash", "gout"][n % 3]) for n in range(12)}
    table = database.create(COLUMNS, list(people.values()))
    by_age = [("[20-25]" if n < 6 else "[26-31]", "*", row[3], n) for n, row in people.items()]
    by_town = [("*", row[2], row[3], n) for n, row in people.items()]
    shifted = [("[20-22]" if n < 3 else "[23-31]", "*", row[3], n) for n, row in people.items()]
    names = [
        database.create(SHOWN, rows, quoted(f"{table} of {place}"))
        for place, rows in enumerate((by_age, by_town, shifted))
    ]
    file = tmp_path / "policy.yml"
    file.write_text(policy_text(policy_of(database, table, "none")), encoding="utf-8")
    good = call("account", "check", *names[:2], "--policy", file, "--json")
    assert good.exit_code == 0
    said = json.loads(good.stdout)
    whole = {"persons": 12, "groups": 4, "smallest": 3, "below_k": 0, "releases": names[:2]}
    assert (said["together"], said["satisfied"], said["k"]) == (whole, True, K)
    bad = call("account", "check", *names, "--policy", file)
    assert bad.exit_code == ProtectionError.exit_code
    assert "3 releases together: 6 groups of 12 persons, the smallest of 1; 6 persons in groups of fewer than 3" in (
        bad.stdout
    )
    assert "distinct-l-diversity" in bad.stdout
    assert f"{names[1]} + {names[2]}" in bad.stdout


def test_columns_that_a_release_does_not_show_tell_nothing(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    database.sql(f"CREATE TABLE {table}_a AS SELECT CAST(age AS VARCHAR(9)) AS age, signature FROM {table}")
    database.sql(f'CREATE TABLE {table}_b AS SELECT age, "to wn" FROM {table}')
    checked = check_releases(policy_of(database, table, "none"), [f"{table}_a", f"{table}_b"], OPTIONS)
    assert [one.omits for one in checked.releases] == [("to wn",), ()]
    require_figures(checked, {n: (row[1], row[1:3]) for n, row in PEOPLE.items()}, PEOPLE)


FAULTS = {
    "no run '0{0}'": ["{t}_a", "0{0}"],
    "There is no table": ["{t}_a", "{t}_nowhere"],
    "'town', which the policy does not release": ["{t}_a", "{t}_renamed"],
    "'who', which the policy does not release": ["{t}_a", "{t}"],
    "lacks 'age', 'to wn'": ["{t}_a", "{t}_none"],
    "is not of the persons that the source has now": ["{t}_a", "{t}_fewer"],
    "two releases or more": ["{t}_a", "{t}_a"],
    "has changed since": ["{t}_a", "{run}"],
    "published nothing": ["{t}_a", "{failed}"],
}


@pytest.mark.parametrize("message", list(FAULTS))
def test_what_can_not_be_checked_is_refused(database: Database, message: str) -> None:
    table = database.create(COLUMNS, [*PEOPLE.values(), person(40, 24, "b", "flu")])
    run = anonymize(policy_of(database, table, "none")).run
    with pytest.raises((ProtectionError, PolicyError)):
        anonymize(policy_of(database, table, "none", privacy=[{"model": "k-anonymity", "k": 18}]), replace=True)
    (failed,) = database.sql("SELECT id FROM sqlanon.runs WHERE status <> 'published' LIMIT 1")
    database.sql(f"DELETE FROM {table} WHERE nr = 40")
    shown = 'CAST(age AS VARCHAR(9)) AS age, "to wn"'
    for name, columns, condition in (
        ("a", shown, "TRUE"),
        ("renamed", 'age, "to wn" AS town', "TRUE"),
        ("none", "signature", "TRUE"),
        ("fewer", shown, "nr <> 3"),
    ):
        database.sql(f"CREATE TABLE {table}_{name} AS SELECT {columns} FROM {table} WHERE {condition}")
    names = [one.format(0, t=table, run=run, failed=failed[0]) for one in FAULTS[message]]
    with pytest.raises(PolicyError, match=message.format(0)):
        check_releases(policy_of(database, table, "none"), names, OPTIONS)
    assert database.leftovers() == []


def test_persons_must_be_known_and_have_one_row(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    names = [f"{table}_a", f"{table}_b"]
    for name in names:
        database.sql(f'CREATE TABLE {name} AS SELECT CAST(age AS VARCHAR(9)) AS age, "to wn" FROM {table}')
    with pytest.raises(PolicyError, match="subject: "):
        check_releases(policy_of(database, table, "none", subject="none"), names, OPTIONS)
    with pytest.raises(PolicyError, match=r"history\.k"):
        check_releases(policy_of(database, table, "none", privacy=MODELS[1:]), names, OPTIONS)
    database.sql(f"UPDATE {table} SET who = 'p1' WHERE nr = 2")
    with pytest.raises(PolicyError, match="several rows"):
        check_releases(policy_of(database, table, "none"), names, OPTIONS)
    database.sql(f"UPDATE {table} SET who = NULL WHERE nr = 2")
    with pytest.raises(PolicyError, match="NULL"):
        check_releases(policy_of(database, table, "none"), names, OPTIONS)


def test_a_source_and_releases_that_are_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"p{n},{20 + n},{'ab'[n % 2]}" for n in range(12)]
    Path("people.csv").write_text("\n".join(["who,age,town", *lines, ""]), encoding="utf-8")
    roles = {"who": {"role": "identifier"}, "age": {"role": "quasi-identifier"}, "town": {"role": "quasi-identifier"}}
    runs = []
    for k in (3, 4):
        data = {
            "source": {"file": "people.csv"},
            "release": {"file": f"released{k}.csv"},
            "attributes": roles,
            "privacy": [{"model": "k-anonymity", "k": k}],
            "subject": "who",
        }
        Path(f"policy{k}.yml").write_text(json.dumps(data), encoding="utf-8")
        runs.append(json.loads(call("run", f"policy{k}.yml", "--json").stdout)["run"])
    said = []
    for names in (runs, ["released3.csv", "released4.csv"]):
        checked = call("account", "check", *names, "--policy", "policy3.yml", "--json")
        assert checked.exit_code in (0, 3), checked.stderr
        said.append({name: json.loads(checked.stdout)["together"][name] for name in ("persons", "groups", "below_k")})
    assert said[0] == said[1]
    assert said[0]["persons"] == 12
