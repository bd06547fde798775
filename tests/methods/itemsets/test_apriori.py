"""Items that are generalized until any m of them are those of k persons, against loops over all sets."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import strategies as st

from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.methods.itemsets import release, search
from sqlanon.report.release_audit.auditing import audit_classes
from sqlanon.sql import Statement
from sqlanon.verification.release import verify_release
from tests.methods.itemsets.simulation import Node, Path, Simulation, best_cut
from tests.random_cases import for_random
from tests.rules_support import apply
from tests.run_support import Database, Row, anonymize, open_database

EXAMPLES = {"duckdb": 12, "postgres": 6}
COLUMNS = {"who": "VARCHAR(9)", "item": "VARCHAR(9)"}
WHO = {"role": "identifier", "show": "surrogate", "nulls": "each"}
LINES = {f"i{n}": [f"g{n // 2}", f"h{n // 4}"] for n in range(12)}
FLAT = "suppress"


@dataclass(frozen=True)
class Case:
    """Items of persons, and what is asked of them. hierarchical: whether they have groups; else `*` alone."""

    rows: list[Row]
    hierarchical: bool
    k: int
    m: int
    suppression: float

    @property
    def attributes(self) -> dict[str, Any]:
        item = {"role": "quasi-identifier"} | ({"hierarchy": {"mapping": LINES}} if self.hierarchical else {})
        return {"who": WHO, "item": item}

    @property
    def asked(self) -> dict[str, Any]:
        model = {"model": "km-anonymity", "k": self.k, "m": self.m}
        given = {"privacy": [model], "algorithm": {"name": "apriori"}, "suppression": self.suppression}
        return {"subject": "who", **given}

    @property
    def simulation(self) -> Simulation:
        """The same table, each row of nobody known of a person of its own."""
        rows = [(("row", place) if who is None else who, item) for place, (who, item) in enumerate(self.rows)]
        items = {item for _, item in rows}
        lines = {item: LINES[item] if self.hierarchical else [] for item in items if item is not None}
        height = 3 if self.hierarchical else 1
        paths: dict[Any, Path] = {item: (item, *line, "*") for item, line in lines.items()}
        if None in items:
            paths[None] = (*("NULL",) * height, "*")
        domain = (len(LINES) if self.hierarchical else len(lines)) + (None in items)
        leaves: Counter[Node] = Counter()
        for first, second in LINES.values():
            leaves.update([(1, ("x" + second, "x" + first)), (2, ("x" + second,))])
        return Simulation(rows, paths, leaves, domain, int(self.suppression * len(rows)))


def case_of(number: int) -> Case:
    """Persons with some of twelve items, the first ones frequent; NULL is an item, and nobody known a person."""
    chance = random.Random(number)
    rows: list[Row] = []
    skew, most = chance.choice([1, 2, 3]), chance.randint(1, 4)
    for person in range(chance.choice([3, 10, 30, 60, 100])):
        who = None if chance.random() < 0.05 else f"p{person}"
        for _ in range(chance.randint(1, most)):
            number = int(12 * chance.random() ** skew)
            rows.append((who, None if chance.random() < 0.03 else f"i{number}"))
    k, m = chance.randint(2, 4), chance.choice([1, 2, 2, 3])
    return Case(rows, chance.random() < 0.7, k, m, chance.choice([0, 0, 0.1, 0.3]))


def frequent(simulation: Simulation, at: dict[Any, int | None], k: int) -> dict[str, Any]:
    """Compare all sets of one item or two that k persons have with what a reader of the release guesses of them."""
    shown, errors, sets, exact = simulation.shown(at), [], 0, 0
    before, after = defaultdict[Any, set[Any]](set), defaultdict[Any, set[Any]](set)
    for who, item in simulation.baskets:
        before[who].add(item)
        if item in shown:
            after[who].add(shown[item])
    for one in (*((item,) for item in simulation.items), *combinations(simulation.items, 2)):
        support = sum(set(one) <= items for items in before.values())
        if support < k:
            continue
        sets += 1
        if all(item in shown for item in one):
            guess = Fraction(sum({shown[item] for item in one} <= groups for groups in after.values()))
            for item in one:
                guess /= max(1, simulation.leaves_of(shown[item]))
            errors.append(abs(guess / support - 1))
            exact += all(simulation.leaves_of(shown[item]) == 1 for item in one)
    known = {"sets": sets, "surviving": len(errors), "exact": exact}
    return known | ({"support_error": pytest.approx(float(sum(errors) / len(errors)))} if errors else {})


def expected(case: Case) -> tuple[Counter[str | None], Counter[int], float, dict[str, Any]] | None:
    """Persons of each label, how many persons show how many groups, the penalty, and what is said of frequent sets.

    None where there is no release.
    """
    simulation = case.simulation
    if len({who for who, _ in simulation.rows}) < case.k:
        return None
    at = best_cut(simulation, case.k, case.m)
    assert simulation.is_met(at, case.k, case.m)
    labels = {item: simulation.paths[item][level] for item, level in at.items() if level is not None}
    of: dict[Any, set[Any]] = defaultdict(set)
    for who, item in simulation.rows:
        if item in labels:
            of[who].add(labels[item])
    cost = simulation.cost(at) / (simulation.domain * len(simulation.baskets))
    each = Counter(label for groups in of.values() for label in groups)
    sizes = Counter(len(groups) for who, groups in of.items() if not isinstance(who, tuple))
    return each, sizes, cost, frequent(simulation, at, case.k)


@for_random(st.integers(0, 10**9).map(case_of), EXAMPLES)
def test_the_cut_is_that_of_loops_over_all_sets(database: Database, case: Case) -> None:
    require_equal(database, case)


@pytest.mark.parametrize("number", [27, 97, 122, 255, 324, 20, 53, 59])
def test_cuts_of_several_levels_are_those_of_loops(database: Database, number: int) -> None:
    """Cases in which groups are divided again at the end, and such with rows left out or sets of three."""
    require_equal(database, case_of(number))


def require_equal(database: Database, case: Case) -> None:
    """Release a case, and compare the release with that of the simulation."""
    wanted = expected(case)
    table = database.create(COLUMNS, case.rows)
    policy = database.policy(table, case.attributes, **case.asked)
    try:
        result = anonymize(policy)
        shown = database.sql(f"SELECT who, item FROM {table}_r")
    except ProtectionError:
        assert wanted is None
        return
    finally:
        database.sql(f"DROP TABLE IF EXISTS {table}_r")
        database.sql(f"DROP TABLE {table}")
    assert wanted is not None
    labels, sizes, penalty, told = wanted
    assert result.as_json()["algorithm"]["frequent"] == told
    assert Counter(item for _, item in shown) == labels
    assert Counter(Counter(who for who, _ in shown if who is not None).values()) == sizes
    assert max(Counter(row for row in shown if row[0] is not None).values(), default=1) == 1
    assert result.metrics.gcp == pytest.approx(penalty, abs=1e-9)
    assert result.release.suppressed <= int(case.suppression * len(case.rows))
    assert database.leftovers() == []


def baskets(persons: int) -> list[Row]:
    """Persons with three to five items of twelve, the first ones frequent."""
    return [(f"p{n}", f"i{(n * step * step) % (4 + n % 9)}") for n in range(persons) for step in range(1, 4 + n % 3)]


CASE = Case(baskets(60), hierarchical=True, k=5, m=2, suppression=0)


def test_engines_release_the_same_bytes(databases: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pseudonyms by a key are those of any engine; rows are in the order of what they show."""
    monkeypatch.setenv("WHOSE_KEY", "k" * 32)
    released = []
    for database in databases:
        table = database.create(COLUMNS, CASE.rows)
        attributes = CASE.attributes | {"who": WHO | {"show": "pseudonym", "key": "${WHOSE_KEY}"}}
        released.append(database.release(table, attributes, **CASE.asked))
    assert released[0] == released[1]
    assert 3 < len({item for _, item in released[0]}) < 12


def test_a_search_of_single_items_is_not_published(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the staged table counts sets for itself."""
    monkeypatch.setattr(search, "persons_of_sets", lambda _: {})
    table = database.create(COLUMNS, CASE.rows)
    with pytest.raises(VerificationError, match="km-anonymity"):
        database.release(table, CASE.attributes, **CASE.asked)
    assert database.leftovers() == []


def test_without_a_hierarchy_items_are_shown_or_left_out(database: Database) -> None:
    """Two items of one person each are left out within the budget; without one all items are `*`."""
    rows = [(f"p{n}", item) for n in range(20) for item in "ab"] + [("p0", "c"), ("p1", "d"), ("p1", "a")]
    table = database.create(COLUMNS, rows)
    case = Case(rows, hierarchical=False, k=2, m=2, suppression=0.1)
    result = anonymize(database.policy(table, case.attributes, **case.asked))
    shown = database.sql(f"SELECT who, item FROM {table}_r")
    assert Counter(item for _, item in shown) == {"a": 20, "b": 20}
    assert (result.release.suppressed, result.release.rows) == (2, 40)
    facts = result.as_json()["algorithm"]
    assert {key: facts[key] for key in ("items", "groups", "shown_items", "suppressed_items", "merged_rows")} == {
        "items": 4,
        "groups": 2,
        "shown_items": 2,
        "suppressed_items": 2,
        "merged_rows": 1,
    }
    whole = database.release(table, case.attributes, **case.asked | {"suppression": 0})
    assert Counter(item for _, item in whole) == {"*": 20}


def test_a_published_table_is_verified_by_its_sets(database_url: str) -> None:
    with open_database(database_url) as database:
        table = database.create(COLUMNS, CASE.rows)
        policy = database.policy(table, CASE.attributes, **CASE.asked)
        models = anonymize(policy).models
    assert verify_release(policy).models == models
    with open_database(database_url) as database:
        one, other = sorted({item for _, item in database.sql(f"SELECT who, item FROM {table}_r")})[:2]
        both = f"SELECT who FROM {table}_r WHERE item = ? AND who IN (SELECT who FROM {table}_r WHERE item = ?)"
        for (who,) in database.sql(both, [one, other])[2:]:
            database.sql(f"DELETE FROM {table}_r WHERE who = ? AND item = ?", [who, one])
    assert not verify_release(policy).satisfied


def test_persons_who_are_not_shown_and_items_of_numbers(database: Database) -> None:
    rows = [(who, int(item[1:])) for who, item in CASE.rows]
    table = database.create({"who;": "VARCHAR(9)", 'it"em': "INTEGER"}, [*rows, *rows])
    item = {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4]}}
    roles = {"who;": {"role": "identifier"}, 'it"em': item}
    shown = database.release(table, roles, **CASE.asked | {"subject": "who;"})
    assert len(shown[0]) == 1
    assert Counter(shown) == Counter((label,) for _, label in set(labels_of(rows, shown)))


def labels_of(rows: list[Row], shown: list[Row]) -> list[tuple[str, str]]:
    """Show every item of a person by the narrowest label that holds it."""
    labels = {label for (label,) in shown}

    def label_of(item: int) -> str:
        names = [str(item), *(f"[{item // n * n}-{item // n * n + n})" for n in (2, 4)), "*"]
        return next(name for name in names if name in labels)

    return [(who, label_of(item)) for who, item in rows]


def test_more_persons_than_there_are_can_not_be_met(database: Database) -> None:
    table = database.create(COLUMNS, CASE.rows)
    with pytest.raises(ProtectionError, match=r"km-anonymity \(k: 61, m: 2\)"):
        database.release(
            table, CASE.attributes, **CASE.asked | {"privacy": [{"model": "km-anonymity", "k": 61, "m": 2}]}
        )


KM = {"model": "km-anonymity", "k": 2, "m": 2}
WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"subject": "none"}, "apriori counts the persons who have items"),
    ({}, {"suppressed": "star", "suppression": 0.1}, "write suppressed: omit"),
    ({}, {"suppressed": {"star": "unprotected"}, "suppression": 0.1}, "write suppressed: omit"),
    (
        {},
        {"privacy": [KM, {"model": "distinct-l-diversity", "attribute": "more", "l": 2}]},
        "does not judge distinct-l",
    ),
    ({"more": "insensitive"}, {}, "attributes.more: several items of a person become one row"),
    ({"more": {"role": "identifier", "show": "surrogate"}}, {}, "attributes.more: several items"),
    ({"more": "quasi-identifier"}, {}, "takes one quasi-identifier, the items, and there are 2"),
    ({"item": "omit"}, {}, "takes one quasi-identifier, the items, and there are 0"),
    ({"item": {"role": "quasi-identifier", "show": "bounds"}}, {}, "leave show out"),
]


@pytest.mark.parametrize(("roles", "more", "message"), WRONG)
def test_what_sets_of_items_are_not_is_refused(
    database: Database, roles: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    table = database.create(COLUMNS | {"more": "INTEGER"}, [(*row, 1) for row in CASE.rows])
    with pytest.raises(PolicyError, match=message):
        database.release(table, CASE.attributes | {"more": "omit"} | roles, **CASE.asked | more)


ARRAYS: list[Row] = [
    *((n, ["a", "b", "a", None][: 2 + n % 3]) for n in range(12)),
    (12, ["a", "c"]),
    (13, []),
    (14, None),
    (15, [None, None]),
]


def test_arrays_go_through_views_of_their_elements_and_back(database: Database) -> None:
    """An empty array, or NULL in its place, has no item; an element that is NULL is an item of its own."""
    table = database.create({"who": "INTEGER", "items": "VARCHAR(9)[]"}, ARRAYS)
    database.sql(f"CREATE VIEW {table}_long AS SELECT who, unnest(items) AS item FROM {table}")
    case = Case([], hierarchical=True, k=3, m=2, suppression=0)
    lines = {"a": ["vowel"], "b": ["other"], "c": ["other"]}
    roles = {"who": WHO, "item": {"role": "quasi-identifier", "hierarchy": {"mapping": lines}}}
    database.release(f"{table}_long", roles, **case.asked)
    arrays = database.sql(f"SELECT array_agg(item ORDER BY item) FROM {table}_long_r GROUP BY who")
    shown = Counter(tuple(sorted(items)) for (items,) in arrays)
    assert shown == {("a", "other"): 9, ("NULL", "a", "other"): 4, ("NULL",): 1}


def test_arrays_themselves_are_refused_with_the_view_to_make(database: Database) -> None:
    table = database.create({"who": "INTEGER", "items": "VARCHAR(9)[]"}, ARRAYS)
    roles = {"who": WHO, "items": {"role": "quasi-identifier"}}
    with pytest.raises(PolicyError, match=r'use a view with a row for each element, such as unnest\("items"\)'):
        database.release(table, roles, **CASE.asked)


def test_other_rows_are_not_recoded_by_its_rules(database: Database) -> None:
    """All rows together decide of which sets persons enough are."""
    table = database.create(COLUMNS, CASE.rows)
    run = anonymize(database.policy(table, CASE.attributes, **CASE.asked)).run
    with pytest.raises(PolicyError, match="left no rules for other rows: its algorithm, apriori, makes none"):
        apply(database, run, table, f"{table}_again")


ALTERED = {
    "": 0,
    "DELETE FROM {r} WHERE who = 1 AND item = {one}": 1,
    "INSERT INTO {r} SELECT who, item FROM {r} WHERE who = 1 AND item = {one}": 1,
    "UPDATE {r} SET item = {other} WHERE who = 1 AND item = {one}": 2,
}


@pytest.mark.parametrize("alteration", ALTERED)
def test_a_published_release_is_held_against_the_persons_of_its_source(database_url: str, alteration: str) -> None:
    """As many persons must show a group as have items of it, whatever rows of theirs were merged."""
    with open_database(database_url) as database:
        table = database.create(COLUMNS, [*CASE.rows, *CASE.rows[:9], (None, "i0"), (None, "i0")])
        policy = database.policy(table, CASE.attributes, **CASE.asked | {"suppression": 0.02})
    anonymize(policy)
    with open_database(database_url) as database:
        (one,), *_ = database.sql(f"SELECT min(item) FROM {table}_r WHERE who = 1")
        (other,), *_ = database.sql(f"SELECT max(item) FROM {table}_r WHERE item <> '{one}'")
        if alteration:
            database.sql(alteration.format(r=f"{table}_r", one=f"'{one}'", other=f"'{other}'"))
    checks = audit_classes(policy).checks
    assert checks["classes_equal"].violations == ALTERED[alteration]
    assert checks["rows_add_up"].violations == int(alteration.startswith(("DELETE", "INSERT")))
    assert checks["regions_contain"].violations == 0


@pytest.mark.parametrize("change", ["DELETE FROM {a} WHERE leaf = 1", "UPDATE {a} SET leaf = 1 WHERE leaf = 2"])
def test_rows_that_a_search_loses_or_moves_are_not_published(
    database: Database, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The persons of each group are counted again before anything is published."""

    def altered(baskets: Any, *given: Any) -> Any:
        partition = release.write_partition(baskets, *given)
        baskets.engine.execute(Statement("test", change.format(a=partition.assigned)))
        (left,) = baskets.engine.query_one("count_rows", table=partition.assigned)
        return replace(partition, merged=baskets.coded.source_rows - left)

    monkeypatch.setattr(search, "write_partition", altered)
    table = database.create(COLUMNS, CASE.rows)
    with pytest.raises(VerificationError, match="sets_equal"):
        database.release(table, CASE.attributes, **CASE.asked)
    assert database.leftovers() == []


def test_codes_of_items_and_persons_that_need_two_words(database: Database) -> None:
    """Items of 56 characters, whose hierarchies have a bit a level, beside more than 64 persons."""
    chance = random.Random(5)
    items = ["a" * place + "b" * (56 - place) for place in range(56)]
    rows = [(f"p{n}", items[int(56 * chance.random() ** 3)]) for n in range(150) for _ in range(3)]
    table = database.create({"who": "VARCHAR(9)", "item": "VARCHAR(56)"}, rows)
    case = Case(rows, hierarchical=True, k=3, m=2, suppression=0)
    masked = case.attributes | {"item": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}}}
    shown = Counter(label for _, label in database.release(table, masked, **case.asked))
    labels = sorted(shown, key=lambda label: label.count("*"))

    def label_of(item: str) -> str:
        return next(one for one in labels if all(shown in (true, "*") for shown, true in zip(one, item, strict=True)))

    assert shown == Counter(label for _, label in {(who, label_of(item)) for who, item in rows})
    assert 1 < len(shown) < 56
