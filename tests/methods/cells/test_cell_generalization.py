"""Cell generalization: what is published, held row by row against the values that labels hold, on both engines."""

from __future__ import annotations

import datetime
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.methods.cells.search import suppressing
from sqlanon.models import models_of
from sqlanon.policy import Policy
from sqlanon.results.run_result import RunResult
from sqlanon.results.search_facts import CellFacts
from sqlanon.sql import Relation, Statement
from sqlanon.verification.release import verify_release, verify_rows
from sqlanon.verification.verdict import Verification
from tests.oracle.climbing import STAR, groups, held_by, least_fitting, text_of
from tests.run_support import Database, Row, anonymize, open_database

pytestmark = pytest.mark.slow

COLUMNS = {
    "age": "INTEGER",
    "city": "VARCHAR",
    "zip": "VARCHAR",
    "born": "DATE",
    "sex": "VARCHAR",
    "ill": "VARCHAR",
    "row_id": "INTEGER",
}
CITIES = {"Paris": ("F", "EU"), "Lyon": ("F", "EU"), "Rome": ("I", "EU"), "Bern": ("CH", "CH"), "Oslo": ("N", "N")}
PLACES = {**CITIES, "Bari": ("I", "EU"), "Nice": ("F", "EU")}
GROUPED: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 30], "origin": 2}},
    "city": {"role": "quasi-identifier", "hierarchy": {"mapping": CITIES, "unknown": "elsewhere"}},
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right", "length": 3}},
    "born": {"role": "quasi-identifier", "hierarchy": {"date": ["month", "quarter", "year"]}},
    "sex": "quasi-identifier",
    "ill": {"role": "sensitive", "nulls": "nothing"},
    "row_id": "insensitive",
}
NAMES = ("age", "city", "zip", "born", "sex")
AGES = [None, -3, 4, 7, 8, 20, 21, 39]
TOWNS = [None, "Paris", "Lyon", "Rome", "Bern", "Ulm", "Gent"]
ZIPS = [None, "", "1", "11", "112", "113", "12", "211"]
DAYS = [None, *(datetime.date(year, month, 5) for year in (2019, 2020) for month in (1, 3, 4, 12))]


def interval(width: int) -> Any:
    def label(age: int) -> str:
        low = (age - 2) // width * width + 2
        return f"[{low}-{low + width})"

    return label


def masked(level: int) -> Any:
    return lambda code: code[: 3 - level] + "*" * level if code else '""'


HELD = [
    held_by(AGES, [interval(width) for width in (5, 10, 30)]),
    held_by(TOWNS, [lambda town, level=level: CITIES.get(town, ("elsewhere",) * 2)[level] for level in (0, 1)]),
    held_by(ZIPS, [masked(level) for level in (1, 2)]),
    held_by(DAYS, [lambda d: f"{d:%Y-%m}", lambda d: f"{d.year}-Q{(d.month + 2) // 3}", lambda d: str(d.year)]),
    held_by(["f", "m"], []),
]


def anonymity(k: int) -> list[dict[str, Any]]:
    return [{"model": "k-anonymity", "k": k}]


def climbing(**more: Any) -> dict[str, Any]:
    return {"name": "cell-generalization", **more}


def random_rows(seed: int, count: int) -> list[Row]:
    """Make rows of which most have the same few values in a column."""
    rng = random.Random(seed)
    choices = [list(choice) for choice in (AGES, TOWNS, ZIPS, DAYS, ["f", "m"], ["flu", "cold", "cough", None])]
    for choice in choices:
        rng.shuffle(choice)
    weights = [[1 / (1 + place) ** 2 for place in range(len(choice))] for choice in choices]
    return [
        (*(rng.choices(*pair)[0] for pair in zip(choices, weights, strict=True)), number) for number in range(count)
    ]


def equal_rows(count: int, age: int, city: str, ill: str = "flu", first: int = 0) -> list[Row]:
    return [(age, city, "11", DAYS[1], "f", ill, first + number) for number in range(count)]


def released_rows(database: Database, policy: Policy) -> list[Row]:
    return sorted(database.sql(f"SELECT * FROM {policy.release.table}"), key=lambda row: row[-1])


def run_on(
    database: Database, rows: list[Row], roles: dict[str, Any] | None = None, **more: Any
) -> tuple[RunResult, Policy, list[Row]]:
    policy = database.policy(database.create(COLUMNS, rows), roles or GROUPED, **{"algorithm": climbing(), **more})
    result = anonymize(policy)
    return result, policy, released_rows(database, policy)


def verify(database: Database, policy: Policy, table: str, names: Sequence[str] = NAMES) -> Verification:
    """Verify a table as a release, beside the session that is open."""
    with connect(database.url) as engine:
        return verify_rows(engine, Relation.parse(table), names, models_of(policy), policy, {}, None)


def require_true(rows: list[Row], shown: list[Row]) -> None:
    """Every cell shows a label that holds the value of its row, and what is kept is as it was."""
    for row, one in zip(rows, shown, strict=True):
        assert one[len(NAMES) :] == row[len(NAMES) :]
        assert all(value in held[cell] for value, cell, held in zip(row, one, HELD, strict=False))


@pytest.mark.either_engine
@pytest.mark.parametrize(("seed", "k", "most"), [(1, 2, 10_000), (2, 3, 0), (3, 5, 0)])
def test_enough_rows_fit_every_row_by_what_their_labels_hold(
    database: Database, seed: int, k: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the search of small tables, where stars alone do not lose less, and of large ones."""
    monkeypatch.setattr(suppressing, "MOST_ROWS", most)
    rows = random_rows(seed, 50)
    result, policy, shown = run_on(database, rows, privacy=anonymity(k))
    require_true(rows, shown)
    least = least_fitting(shown, HELD)
    assert least >= k
    assert result.models[0].worst == result.release.min_class_size == least
    facts = result.algorithm.facts
    assert isinstance(facts, CellFacts)
    assert facts.grouped is not None
    cells = [
        (cell, text_of(value))
        for row, one in zip(rows, shown, strict=True)
        for value, cell in zip(row, one[:5], strict=False)
    ]
    assert facts.cells == sum(cell == STAR for cell, _ in cells)
    # labels of groups may read like their value: they are counted by what they stand for
    assert sum(facts.grouped.values()) >= sum(cell not in (STAR, value) for cell, value in cells) > 0
    assert verify(database, policy, str(policy.release.table)).models == result.models
    assert database.leftovers() == []


@pytest.mark.either_engine
def test_the_rows_that_fit_have_enough_sensitive_values(database: Database) -> None:
    rows = random_rows(4, 40)
    diverse = {"model": "distinct-l-diversity", "attribute": "ill", "l": 3}
    result, _, shown = run_on(database, rows, privacy=[*anonymity(2), diverse])
    require_true(rows, shown)
    values = min(len({rows[place][5] for place in group} - {None}) for group in groups(shown, HELD))
    assert result.models[1].worst == values >= 3


def least_in_combinations(shown: Sequence[Sequence[str]], size: int) -> int:
    """Count the rows that fit the row which fewest fit, in any combination of so many columns alone."""
    return min(
        least_fitting([[row[place] for place in chosen] for row in shown], [HELD[place] for place in chosen])
        for chosen in itertools.combinations(range(len(HELD)), size)
    )


@pytest.mark.either_engine
@pytest.mark.parametrize("seed", [2, 3])
def test_every_combination_of_columns_is_checked_alone(database: Database, seed: int) -> None:
    """Cells that climbed for all columns together climb on for some of them."""
    rows = random_rows(seed, 40)
    result, policy, shown = run_on(database, rows, privacy=anonymity(2), algorithm=climbing(subsets={1: 12, 2: 5}))
    require_true(rows, shown)
    assert least_fitting(shown, HELD) == result.models[0].worst
    for size, k in ((1, 12), (2, 5)):
        least = least_in_combinations(shown, size)
        assert least >= k
        assert any(one.parameters == {"k": k, "columns": size} and one.worst == least for one in result.models)
    facts = result.algorithm.facts
    assert isinstance(facts, CellFacts)
    assert facts.subsets == {"1": 12, "2": 5}
    assert sum((facts.grouped or {}).values()) > 0
    assert verify(database, policy, str(policy.release.table)).models == result.models
    assert database.leftovers() == []


@pytest.mark.either_engine
def test_combinations_are_of_columns_with_all_their_levels(database: Database) -> None:
    """Rome is like Bari by its country, and shows a value where others show France: by both it is alone."""
    shown = [("Rome", "f"), *[("F", "f")] * 3, *[("Bari", "f")] * 3]
    table = database.create({"city": "VARCHAR", "sex": "VARCHAR"}, shown)
    roles = {"city": {"role": "quasi-identifier", "hierarchy": {"mapping": PLACES}}, "sex": "quasi-identifier"}
    policy = database.policy(table, roles, algorithm=climbing(subsets={1: 2}), privacy=anonymity(1))
    result = verify(database, policy, table, ("city", "sex")).models[1]
    assert (result.worst, result.violating_rows, result.satisfied) == (1, 1, False)


@pytest.mark.either_engine
def test_a_group_that_weighs_as_much_as_a_star_climbs_to_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step weighs nothing then, and is tried all the same; in a small table most of these steps are taken back."""
    monkeypatch.setattr(suppressing, "MOST_ROWS", 0)
    towns = [f"town {number}" for number in range(99)]
    hierarchy = {"mapping": {**dict.fromkeys(towns, "many"), "Ulm": "one"}}
    people = [*((town, "f") for town in towns[:40]), *[("Ulm", "m")] * 50]
    rows = [(None, city, None, None, sex, None, place) for place, (city, sex) in enumerate(people)]
    roles = {**dict.fromkeys(COLUMNS, "insensitive"), "city": {"role": "quasi-identifier", "hierarchy": hierarchy}}
    roles["sex"] = "quasi-identifier"
    _, _, shown = run_on(database, rows, roles, privacy=anonymity(2), algorithm=climbing())
    assert [row[1] for row in shown] == ["many"] * 40 + ["Ulm"] * 50
    _, policy, shown = run_on(database, rows, roles, privacy=anonymity(2), algorithm=climbing(subsets={1: 45}))
    assert [row[1] for row in shown] == ["*"] * 40 + ["Ulm"] * 50
    held = [held_by([*towns, "Ulm"], [lambda town: "one" if town == "Ulm" else "many"]), held_by("fm", [])]
    pairs = [(row[1], row[4]) for row in shown]
    assert min(least_fitting([[one[place]] for one in pairs], [held[place]]) for place in (0, 1)) >= 45
    assert verify(database, policy, str(policy.release.table), ("city", "sex")).satisfied


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """One database for all examples."""
    with open_database(f"duckdb:///{tmp_path_factory.mktemp('cells') / 'small.duckdb'}") as opened:
        yield opened


@settings(max_examples=4, deadline=None, phases=[Phase.generate])
@given(seed=st.integers(0, 999), count=st.integers(8, 30), k=st.integers(2, 4))
def test_no_release_loses_more_than_with_stars_alone(small: Database, seed: int, count: int, k: int) -> None:
    rows = random_rows(seed, count)
    few = {**GROUPED, **dict.fromkeys(("age", "zip", "born"), "insensitive")}
    grouped, _, shown = run_on(small, rows, few, privacy=anonymity(k))
    stars = {**few, "city": "quasi-identifier"}
    starred, _, _ = run_on(small, rows, stars, privacy=anonymity(k), algorithm={"name": "local-suppression"})
    assert least_fitting([(row[1], row[4]) for row in shown], [HELD[1], HELD[4]]) >= k
    assert grouped.metrics.gcp is not None
    assert starred.metrics.gcp is not None
    assert grouped.metrics.gcp <= starred.metrics.gcp


def test_both_engines_publish_the_same(tmp_path: Any, postgres_url: str) -> None:
    shown = []
    for url in (f"duckdb:///{tmp_path / 'a.duckdb'}", postgres_url):
        with open_database(url) as database:
            _, policy, released = run_on(
                database,
                random_rows(5, 60),
                privacy=anonymity(3),
                algorithm=climbing(importance={"age": 3}, subsets={1: 9, 2: 5}),
            )
            shown.append(released)
        assert verify_release(policy).satisfied
    assert shown[0] == shown[1]


@pytest.mark.either_engine
def test_without_hierarchies_it_is_local_suppression(database: Database) -> None:
    rows, roles = random_rows(6, 50), {**GROUPED, **dict.fromkeys(NAMES, "quasi-identifier")}
    more = {"importance": {"sex": 2}, "subsets": {2: 6}}
    releases = [
        run_on(database, rows, roles, privacy=anonymity(3), algorithm={"name": name, **more})[2]
        for name in ("local-suppression", "cell-generalization")
    ]
    assert releases[0] == releases[1]


@pytest.mark.either_engine
def test_whole_columns_stay_as_they_are(database: Database) -> None:
    rows = random_rows(7, 60)
    _, _, shown = run_on(database, rows, privacy=anonymity(3), algorithm=climbing(whole=["sex"]))
    require_true(rows, shown)
    assert all(one[4] == row[4] for row, one in zip(rows, shown, strict=True))
    assert least_fitting(shown, HELD) >= 3
    with pytest.raises(ProtectionError, match=r"in the columns that stay whole \(age, zip\)"):
        run_on(database, rows, privacy=anonymity(9), algorithm=climbing(whole=["age", "zip"]))


@pytest.mark.either_engine
def test_an_altered_release_is_not_verified(database: Database) -> None:
    """A row that shows its values again is no longer in the group of others."""
    rows = random_rows(8, 40)
    _, policy, shown = run_on(database, rows, privacy=anonymity(3))
    bare = [(*(text_of(value) for value in row[:5]), *row[5:]) for row in rows]
    altered = [[*shown[:place], bare[place], *shown[place + 1 :]] for place in range(len(rows))]
    place, least = next((n, least) for n, one in enumerate(altered) if (least := least_fitting(one, HELD)) < 3)
    changes = ", ".join(f"{name} = '{cell}'" for name, cell in zip(NAMES, bare[place], strict=False))
    database.sql(f"UPDATE {policy.release.table} SET {changes} WHERE row_id = {place}")
    verification = verify(database, policy, str(policy.release.table))
    assert verification.models[0].worst == least
    assert not verification.satisfied


LEFT = {"role": "quasi-identifier", "hierarchy": {"mask": "left", "length": 3}}
ODD_DAYS = [*DAYS, datetime.date(2020, 2, 29), datetime.date(1999, 12, 31)]


@pytest.mark.either_engine
@pytest.mark.parametrize("seed", range(2))
def test_a_table_is_verified_by_its_labels_alone(database: Database, seed: int) -> None:
    """Whatever wrote the table: labels of all levels, in any combination, are held against the definition."""
    rng, names = random.Random(seed), ("age", "city", "zip", "born")
    left = held_by(
        ZIPS, [lambda code, level=level: "*" * level + code[level - 3 :] if code else '""' for level in (1, 2)]
    )
    periods = [lambda d: f"{d:%Y-%m}", lambda d: str(d.year), lambda d: f"{d.year // 10}0s"]
    held = [HELD[0], HELD[1], left, held_by(ODD_DAYS, periods)]
    rows = [tuple(rng.choice(sorted(column)) for column in held) for _ in range(70)]
    table = database.create(dict.fromkeys(names, "VARCHAR"), rows)
    dates = {"role": "quasi-identifier", "hierarchy": {"date": ["month", "year", "decade"]}}
    roles = {name: {**GROUPED, "zip": LEFT, "born": dates}[name] for name in names}
    policy = database.policy(table, roles, algorithm=climbing(), privacy=anonymity(2))
    verification = verify(database, policy, table, names)
    sizes = Counter(len(group) for group in groups(rows, held))
    assert verification.statistics.sizes == tuple(sorted(sizes.items()))


@pytest.mark.parametrize("stray", ["somewhere", "[5-9)", "[x-y)", "2020-W05", "99**99", ""])
def test_a_text_that_is_no_label_fits_what_is_equal(small: Database, stray: str) -> None:
    """An altered release may hold anything: what can't be read is like no other value."""
    names = NAMES[:4]
    shown = [*[("20", "Paris", "11*", "2020-03")] * 3, (stray,) * 4]
    table = small.create(dict.fromkeys(names, "VARCHAR"), shown)
    policy = small.policy(table, {name: GROUPED[name] for name in names}, algorithm=climbing(), privacy=anonymity(2))
    result = verify(small, policy, table, names).models[0]
    assert (result.worst, result.violating_rows) == (1, 1)


@pytest.mark.either_engine
@pytest.mark.parametrize("name", ["age", "zip"])
def test_groups_that_the_hierarchy_lacks_fit_no_others(database: Database, name: str) -> None:
    """An interval of one number, or a mask with nothing masked, tells the value as it looks like a group."""
    labels = {"age": [f"[{age}-{age + 1})" for age in range(7, 11)], "zip": [f"11{digit}*" for digit in range(4)]}
    widths = ["[7-14)", "[8-13)", "[7-12)", "8"], ["112", "11*"]
    rows = [(label,) for label in (*labels[name], *widths[name == "zip"])]
    table = database.create({name: "VARCHAR"}, rows)
    policy = database.policy(table, {name: GROUPED[name]}, algorithm=climbing(), privacy=anonymity(2))
    alone = len(rows) - 2  # the last two of each fit each other
    result = verify(database, policy, table, [name]).models[0]
    assert (result.worst, result.violating_rows) == (1, alone)


@pytest.mark.either_engine
def test_a_label_that_does_not_hold_its_value_is_not_published(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The labels are held against the raw values of their rows, by the policy's hierarchies."""
    run = Engine.run

    def mislabel(self: Engine, name: str, /, **given: Any) -> Any:
        made = run(self, name, **given)
        if name == "staging/create_regions":
            table = given["regions"]
            statement = f"UPDATE {table} SET c1 = CASE c1 WHEN 'F' THEN 'I' ELSE c1 END"
            self.execute(Statement("mislabel", statement))
        return made

    monkeypatch.setattr(Engine, "run", mislabel)
    with pytest.raises(VerificationError, match="regions_contain"):
        run_on(database, equal_rows(3, 20, "Paris") + equal_rows(3, 20, "Lyon", first=3), privacy=anonymity(5))
    assert database.leftovers() == []


DIVERSE = {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("models", "template", "values", "message"),
    [
        (anonymity(5), "methods/cells/create_candidates", {"least": 4}, "k-anonymity"),
        ([*anonymity(4), DIVERSE], "methods/cells/star_tuples", {"measures": []}, "distinct-l-diversity"),
    ],
)
def test_a_search_that_climbs_too_little_is_caught(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    models: list[dict[str, Any]],
    template: str,
    values: dict[str, Any],
    message: str,
) -> None:
    run = Engine.run

    def break_search(self: Engine, name: str, /, **given: Any) -> Any:
        return run(self, name, **{**given, **(values if name == template else {})})

    monkeypatch.setattr(Engine, "run", break_search)
    rows = equal_rows(6, 20, "Paris") + equal_rows(4, 39, "Oslo", first=6) + equal_rows(6, 4, "Rome", "cold", 10)
    with pytest.raises(VerificationError, match=message):
        run_on(database, rows, privacy=models)


def grouped(name: str, **role: Any) -> dict[str, Any]:
    return {**GROUPED, name: {"role": "quasi-identifier", **role}}


def mapped(**more: Any) -> dict[str, Any]:
    return grouped("city", hierarchy={"mapping": {"Paris": "x", **dict.fromkeys(TOWNS[2:], "y")}, **more})


REFUSED = [
    (grouped("zip", hierarchy={"mask": "right"}), r"attributes\.zip: .* give the mask its length"),
    (grouped("born", hierarchy={"date": ["week"]}), "a week's label does not tell its days"),
    (grouped("age", hierarchy={"intervals": [2.5]}), "only intervals of whole numbers"),
    (grouped("age", hierarchy={"intervals": [4, 10]}), "widths must be multiples of each other"),
    (grouped("age", hierarchy={"intervals": [5]}, top=30), "no labels with open ends"),
    (grouped("age", show="bounds"), "cell-generalization shows values and `\\*` as texts"),
    (mapped(unknown="*"), r"attributes\.city: `\*` is a value or label of its hierarchy"),
    (mapped(unknown="x"), "the label of unknown values is a value or label of its hierarchy too"),
    (mapped(unknown="Ulm"), "the label of unknown values is a value"),
    (grouped("city", hierarchy={"mapping": {"Ulm": "Gent", "Gent": "y"}, "unknown": "z"}), "1 do"),
]


@pytest.mark.parametrize(("roles", "message"), REFUSED)
def test_hierarchies_whose_labels_tell_too_little_are_refused(
    small: Database, roles: dict[str, Any], message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        run_on(small, random_rows(1, 9), roles)


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("sex", "*", "the text `\\*`, which readers could not tell from a suppressed cell"),
        ("zip", "1*", "a text with `\\*`, which readers could not tell from a mask"),
        ("zip", '""', 'the text `""`, which readers could not tell from an empty text that is masked'),
        ("city", "NULL", "the text `NULL`, which readers could not tell from NULL"),
        ("city", "elsewhere", "the text `elsewhere`, which is the label of unknown values too"),
    ],
)
def test_values_that_read_like_labels_are_refused(database: Database, name: str, text: str, message: str) -> None:
    rows = [*random_rows(1, 9), tuple(text if one == name else None for one in COLUMNS)]
    with pytest.raises(PolicyError, match=rf"attributes\.{name}: 1 row holds {message}"):
        run_on(database, rows)


@pytest.mark.parametrize(
    ("length", "message"),
    [(20, "the hierarchies have 65 levels together, and .* takes 62"), (16, "make 29,478 combinations, .* 20,000")],
)
def test_too_many_levels_are_refused(small: Database, length: int, message: str) -> None:
    texts = ["x" * place + "y" * (length - place) for place in range(length + 1)]
    roles = {**GROUPED, "born": "insensitive", **grouped_age([2, 4, 8, 16])}
    for name in ("city", "zip", "sex"):
        roles[name] = {"role": "quasi-identifier", "hierarchy": {"mask": "right", "length": length}}
    with pytest.raises(PolicyError, match=message):
        run_on(small, [(place, text, text, None, text, "flu", place) for place, text in enumerate(texts)], roles)


def grouped_age(widths: list[int]) -> dict[str, Any]:
    return {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": widths}}}
