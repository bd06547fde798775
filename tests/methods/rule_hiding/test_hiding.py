"""Releases with hidden rules on both engines, against rules mined by plain Python; refusals and verification."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date
from decimal import Decimal
from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.methods.rule_hiding.plan import HidingPlan
from sqlanon.methods.rule_hiding.search.border import border_of
from sqlanon.methods.rule_hiding.verify import check_hidden
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Relation, Statement
from tests.hiding_support import BASKETS, baskets_of, counts_of, hide, hiding_policy, is_mined, mine
from tests.run_support import Database

COLUMNS = {"basket": "INTEGER", "item": "VARCHAR(9)"}
PLAIN = {"name": "hide-rules"}
METHODS = st.sampled_from(["shortest", "border"])
ITEMS = "abcde"
sides = st.sets(st.sampled_from(ITEMS), min_size=1, max_size=3)
drawn_rules = st.lists(st.tuples(sides, sides).filter(lambda one: not one[0] & one[1]), min_size=1, max_size=3)


def written(rules: Any) -> list[dict[str, Any]]:
    return [{"if": sorted(left), "then": sorted(right)} for left, right in rules]


def random_rows(seed: int, baskets: int = 14) -> list[tuple[int, Any]]:
    """Items of baskets, some twice and some NULL; every item occurs."""
    draw = random.Random(seed)
    rows: list[tuple[int, Any]] = [(0, item) for item in ITEMS]
    for basket in range(1, baskets):
        rows += [(basket, draw.choice([*ITEMS, "a", "b", None])) for _ in range(draw.randint(1, 6))]
    return rows


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 999), drawn_rules, st.integers(1, 4), st.sampled_from([0.3, 0.5, 1.0]), METHODS)
def test_no_rule_can_be_mined_and_other_rows_stay(
    database: Database, seed: int, rules: Any, support: int, confidence: float, method: str
) -> None:
    rows = random_rows(seed)
    table = database.create(COLUMNS, rows)
    algorithm = BASKETS | {"method": method}
    result = hide(hiding_policy(database, table, COLUMNS, written(rules), support, confidence, algorithm=algorithm))
    released = database.sql(f"SELECT basket, item FROM {table}_r")
    before, after = baskets_of(rows), baskets_of(released)
    plain = [(frozenset(left), frozenset(right)) for left, right in rules]
    assert not any(is_mined(counts_of(after.values(), rule), support, confidence) for rule in plain)
    assert not Counter(released) - Counter(rows)
    gone = {(basket, item) for basket, items in before.items() for item in items - after.get(basket, set())}
    assert {item for _, item in gone} <= set().union(*(right for _, right in rules))
    assert Counter(released) == Counter(row for row in rows if row not in gone)
    assert (result.removed, result.changed) == (len(gone), len({basket for basket, _ in gone}))
    figures = [(one.support, one.left_support, one.released_support, one.released_left_support) for one in result.rules]
    assert figures == [(*counts_of(before.values(), rule), *counts_of(after.values(), rule)) for rule in plain]
    taken = {item for _, item in gone}
    mined, left = (
        {rule for rule in mine(baskets.values(), support, confidence, 3) - set(plain) if taken & (rule[0] | rule[1])}
        for baskets in (before, after)
    )
    assert result.others is not None
    assert (result.others.mined, result.others.missing, result.others.ghosts) == (
        len(mined),
        len(mined - left),
        len(left - mined),
    )


ROW_COLUMNS = {"Job title": "VARCHAR(9)", "age": "INTEGER", "born": "DATE", "pay": "DECIMAL(8,2)", "id": "INTEGER"}
VALUES: dict[str, list[Any]] = {
    "Job title": ["o'brien", "nurse", None],
    "age": [30, 31, None],
    "born": [date(2000, 1, 31), date(1999, 12, 1)],
    "pay": [Decimal("10.00"), Decimal("10.50")],
}
TEXTS = {"Job title": ["o'brien", "nurse"], "age": ["30", "31"], "born": ["2000-01-31"], "pay": ["10.00"]}
row_sides = st.dictionaries(st.sampled_from(list(TEXTS)), st.integers(0, 1), min_size=1, max_size=2)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 999), st.lists(st.tuples(row_sides, row_sides), min_size=1, max_size=3), st.integers(1, 3), METHODS
)
def test_values_of_rows_are_items_too(database: Database, seed: int, drawn: Any, support: int, method: str) -> None:
    draw = random.Random(seed)
    seen = [("o'brien", 30, date(2000, 1, 31), Decimal("10.00")), ("nurse", 31, date(2000, 1, 31), Decimal("10.00"))]
    rows = seen + [tuple(draw.choice(values) for values in VALUES.values()) for _ in range(18)]
    sided = [[{n: TEXTS[n][place % len(TEXTS[n])] for n, place in side.items()} for side in rule] for rule in drawn]
    rules = [(left, {n: v for n, v in right.items() if n not in left}) for left, right in sided]
    rules = [rule for rule in rules if rule[1]] or [({"age": "30"}, {"Job title": "o'brien"})]
    table = database.create(ROW_COLUMNS, [(*row, number) for number, row in enumerate(draw.sample(rows, len(rows)))])
    written_rules = [{"if": left, "then": right} for left, right in rules]
    policy = hiding_policy(
        database,
        table,
        ROW_COLUMNS,
        written_rules,
        support,
        0.5,
        roles={"id": "identifier"},
        algorithm=PLAIN | {"method": method},
    )
    result = hide(policy)
    released = database.sql(f"SELECT * FROM {table}_r")
    assert database.columns(f"{table}_r") == database.columns(table)[:4]
    before, after = (list(map(items_of, listed)) for listed in (rows, released))
    plain = [(frozenset(left.items()), frozenset(right.items())) for left, right in rules]
    assert not any(is_mined(counts_of(after, rule), support, 0.5) for rule in plain)
    assert result.removed == sum(map(len, before)) - sum(map(len, after))
    assert result.unit == "rows"
    all_mined, all_left = (mine(listed, support, 0.5, 3) - set(plain) for listed in (before, after))
    taken = {item for item, n in Counter(chain(*before)).items() if n > Counter(chain(*after))[item]}
    mined, left = ({rule for rule in rules if taken & (rule[0] | rule[1])} for rules in (all_mined, all_left))
    assert all_mined - mined == all_left - left
    assert result.others is not None
    assert (result.others.mined, result.others.missing, result.others.ghosts) == (
        len(mined),
        len(mined - left),
        len(left - mined),
    )


def items_of(row: Any) -> set[tuple[str, str]]:
    return {(name, str(value)) for name, value in zip(VALUES, row, strict=True) if value is not None}


def roles_of(roles: dict[str, str]) -> dict[str, Any]:
    return {name: {"role": role} for name, role in roles.items()}


EXACT = BASKETS | {"method": "exact", "most": 1}
few = st.sets(st.sampled_from("abc"), min_size=1, max_size=2)
few_rules = st.lists(st.tuples(few, few), min_size=1, max_size=2).map(
    lambda rules: [(left, right - left or set(sorted(set("abc") - left)[:1])) for left, right in rules]
)


def fewest(baskets: list[frozenset[Any]], rules: list[Any], support: int, confidence: float) -> int:
    """Try all sets of cells, the smallest first."""
    cells = [(place, item) for place, basket in enumerate(baskets) for item in sorted(basket & set("abc"))]
    for size in range(len(cells) + 1):
        for chosen in combinations(cells, size):
            left = [basket - {item for at, item in chosen if at == place} for place, basket in enumerate(baskets)]
            if not any(is_mined(counts_of(left, rule), support, confidence) for rule in rules):
                return size
    raise AssertionError


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sets(st.sampled_from("abcd"), min_size=2), min_size=3, max_size=5),
    few_rules,
    st.integers(1, 2),
    st.sampled_from([0.4, 0.5, 0.75, 1.0]),
)
def test_as_few_items_as_there_can_be(
    database: Database, drawn: Any, rules: Any, support: int, confidence: float
) -> None:
    baskets = [frozenset("abc"), *map(frozenset, drawn)]
    table = database.create(COLUMNS, [(place, item) for place, one in enumerate(baskets) for item in sorted(one)])
    policy = hiding_policy(database, table, COLUMNS, written(rules), support, confidence, algorithm=EXACT)
    plain = [(frozenset(left), frozenset(right)) for left, right in rules]
    result = hide(policy)
    after = baskets_of(database.sql(f"SELECT * FROM {table}_r"))
    assert not any(is_mined(counts_of(after.values(), rule), support, confidence) for rule in plain)
    assert result.removed == fewest(baskets, plain, support, confidence)


def test_exact_chooses_what_hides_several_rules(database: Database) -> None:
    """One a hides both rules; taking right sides out needs two items."""
    table = database.create(COLUMNS, [(basket, item) for basket in (1, 2) for item in "abc"])
    rules = [{"if": ["a"], "then": ["b"]}, {"if": ["a"], "then": ["c"]}]
    removed = [
        hide(hiding_policy(database, table, COLUMNS, rules, 2, 0.6, algorithm=EXACT | {"method": method}), replace=True)
        for method in ("shortest", "exact")
    ]
    assert [one.removed for one in removed] == [2, 1]


def test_exact_takes_several_items_out_of_one_transaction(database: Database) -> None:
    table = database.create(COLUMNS, [(1, item) for item in "abcd"])
    rules = [{"if": ["a"], "then": ["b"]}, {"if": ["c"], "then": ["d"]}]
    result = hide(hiding_policy(database, table, COLUMNS, rules, 1, 0.5, algorithm=EXACT))
    assert (result.removed, result.changed) == (2, 1)


def test_a_program_that_is_too_large_is_refused(database: Database) -> None:
    names = [f"i{place:02}" for place in range(14)]
    table = database.create(COLUMNS, [(basket, item) for basket in (1, 2) for item in names])
    rules = [{"if": names[:7], "then": names[7:]}]
    with pytest.raises(PolicyError, match="exact takes 12; use method: shortest"):
        hide(hiding_policy(database, table, COLUMNS, rules, algorithm=EXACT))
    assert database.leftovers() == []


def test_the_shortest_transactions_lose_items(database: Database) -> None:
    """Of three baskets with a rule the two shortest lose its right side; a support of two is not met then."""
    baskets = {1: "ab", 2: "abcde", 3: "abc", 4: "cd"}
    rows = [(basket, item) for basket, items in baskets.items() for item in items]
    table = database.create(COLUMNS, rows)
    result = hide(hiding_policy(database, table, COLUMNS, [{"if": ["a"], "then": ["b"]}], 2, 0.1))
    gone = Counter(rows) - Counter(database.sql(f"SELECT * FROM {table}_r"))
    assert gone == Counter([(1, "b"), (3, "b")])
    assert (result.removed, result.changed, result.rounds) == (2, 2, 1)


@pytest.mark.parametrize(("method", "loses", "missing"), [("shortest", 1, 3), ("border", 2, 1)])
def test_border_keeps_sets_frequent(database: Database, method: str, loses: int, missing: int) -> None:
    """Without the b of the first basket, the shortest, b and c are in too few; that of the second is in no such set."""
    baskets = {1: "abc", 2: "abxyz", 3: "bc", 4: "cd"}
    rows = [(basket, item) for basket, items in baskets.items() for item in items]
    table = database.create(COLUMNS, rows)
    rules = [{"if": ["a"], "then": ["b"]}]
    result = hide(hiding_policy(database, table, COLUMNS, rules, 2, 0.5, algorithm=BASKETS | {"method": method}))
    assert Counter(rows) - Counter(database.sql(f"SELECT * FROM {table}_r")) == Counter([(loses, "b")])
    assert result.others is not None
    assert result.others.missing == missing


def test_border_spares_what_lost_most(database: Database) -> None:
    """Of sixteen baskets eight lose their b: one of each kind in turn, as a set weighs more with each loss.

    bc is in ten baskets and bd in nine; three are enough. The first loss of bd costs 1/6, of bc 1/7, the next 2/7.
    """
    baskets = [*["abc"] * 8, *["abd"] * 8, "bc", "bc", "bd"]
    table = database.create(COLUMNS, [(basket, item) for basket, items in enumerate(baskets) for item in items])
    rules = [{"if": ["a"], "then": ["b"], "support": 9}]
    hide(hiding_policy(database, table, COLUMNS, rules, 3, 0.1, algorithm=BASKETS | {"method": "border"}))
    after = baskets_of(database.sql(f"SELECT * FROM {table}_r")).values()
    assert [sum({"b", other} <= basket for basket in after) for other in "cd"] == [6, 5]


def test_the_border_is_of_the_largest_sets() -> None:
    draw = random.Random(1)
    for _ in range(50):
        sets = {frozenset(draw.sample(range(6), draw.randint(1, 3))) for _ in range(8)}
        sets |= {frozenset(part) for one in sets for n in range(1, len(one)) for part in combinations(one, n)}
        hidden = [frozenset(draw.sample(range(6), 2))]
        kept = [one for one in sets if not hidden[0] <= one]
        assert set(border_of(sets, hidden)) == {one for one in kept if not any(one < other for other in kept)}


def test_a_rule_that_another_one_makes_surer_is_hidden_too(database: Database) -> None:
    """b leaves baskets for a → b, by which b → c becomes surer than it was; a second round hides it."""
    baskets = {1: "ab", 2: "ab", 3: "bc", 4: "bcf", 5: "bde", 6: "c"}
    table = database.create(COLUMNS, [(basket, item) for basket, items in baskets.items() for item in items])
    rules: list[dict[str, Any]] = [{"if": ["b"], "then": ["c"]}, {"if": ["a"], "then": ["b"], "confidence": 0.1}]
    result = hide(hiding_policy(database, table, COLUMNS, rules, 1, 0.5))
    assert result.rounds == 2
    assert [one.was_mined for one in result.rules] == [False, True]
    assert all(one.released_support * 2 < one.released_left_support for one in result.rules[:1])


def test_more_items_than_a_word_has_bits(database: Database) -> None:
    rows = [(basket, f"i{item}") for basket in range(2) for item in range(130)]
    table = database.create(COLUMNS, rows)
    rules = [{"if": [f"i{item}"], "then": [f"i{item + 1}"]} for item in range(0, 130, 2)]
    result = hide(hiding_policy(database, table, COLUMNS, rules, 2, 0.5, algorithm=BASKETS | {"most": 1}))
    assert result.others is None
    assert result.removed == 65
    assert len(database.sql(f"SELECT * FROM {table}_r")) == 260 - 65


def test_both_engines_release_the_same_and_show_it(databases: tuple[Database, Database]) -> None:
    rows = [*random_rows(5, 40), (40, "é'x"), (40, "a")]
    released = []
    for database in databases:
        table = database.create(COLUMNS, rows if database.engine == "duckdb" else rows[::-1], "baskets")
        rules = [{"if": ["a"], "then": ["b", "é'x"]}, {"if": ["c"], "then": ["a"]}]
        policy = hiding_policy(database, table, COLUMNS, rules)
        hide(policy)
        released.append(database.sql(f"SELECT * FROM {table}_r"))
        assert database.leftovers() == []
        with pytest.raises(PolicyError, match="--replace"):
            hide(policy)
        assert any("may mine there" in warning for warning in hide(policy, replace=True).warnings)
    assert released[0] == released[1]


def test_values_stay_out_of_records(database: Database) -> None:
    table = database.create(COLUMNS, [(1, "canary"), (1, "b"), (2, "canary"), (2, "b")])
    policy = hiding_policy(database, table, COLUMNS, [{"if": ["canary"], "then": ["b"]}])
    result = hide(policy)
    with connect(database.url) as engine:
        catalog = Catalog.open(engine)
        run, steps = catalog.run(result.run), catalog.steps(result.run)
    assert steps
    assert not any("canary" in step.statement for step in steps)
    assert run.method_result == result
    assert run.result is None
    assert "canary" not in str(result.as_json())


ADDED = {
    "a rule can be mined": ("INSERT INTO {rows} SELECT basket, 'b' FROM {rows} WHERE item = 'a'", "rules_hidden"),
    "an item came": ("INSERT INTO {rows} VALUES (77, 'b')", "nothing_added"),
    "another item came": ("INSERT INTO {rows} VALUES (1, 'd')", "other_items_equal"),
    "another item is lost": ("DELETE FROM {rows} WHERE item = 'c'", "other_items_equal"),
    "a column came": ("ALTER TABLE {rows} ADD COLUMN ssn VARCHAR(9)", "columns_equal"),
}


@pytest.mark.parametrize("name", ADDED)
def test_nothing_is_published_that_was_tampered_with(
    database: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement, check = ADDED[name]
    table = database.create(COLUMNS, random_rows(3))
    policy = hiding_policy(database, table, COLUMNS, [{"if": ["a"], "then": ["b"]}])

    def tampered(engine: Engine, plan: HidingPlan, release: Relation) -> Any:
        engine.execute(Statement("tamper", Markup(statement.format(rows=release))))
        return check_hidden(engine, plan, release)

    monkeypatch.setattr("sqlanon.methods.rule_hiding.source.check_hidden", tampered)
    with pytest.raises(VerificationError, match=check):
        hide(policy)
    assert database.sql("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [f"{table}_r"]) == []
    assert database.leftovers() == []


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        ("UPDATE {rows} SET x = CASE x WHEN 'a' THEN 'b' ELSE 'a' END WHERE x IN ('a', 'b')", "nothing_added"),
        ("UPDATE {rows} SET y = 'w'", "other_items_equal"),
    ],
)
def test_rows_that_were_tampered_with_are_seen(
    database: Database, statement: str, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.create({"x": "VARCHAR(3)", "y": "VARCHAR(3)"}, [("a", "u"), ("b", "v"), ("a", "u")])
    policy = hiding_policy(database, table, "xy", [{"if": {"x": "a"}, "then": {"y": "u"}}, WITH_B], 9, algorithm=PLAIN)

    def tampered(engine: Engine, plan: HidingPlan, release: Relation) -> Any:
        engine.execute(Statement("tamper", Markup(statement.format(rows=release))))
        return check_hidden(engine, plan, release)

    monkeypatch.setattr("sqlanon.methods.rule_hiding.source.check_hidden", tampered)
    with pytest.raises(VerificationError, match=check):
        hide(policy)


WITH_B = {"if": {"x": "b"}, "then": {"y": "v"}}
RULE = {"if": ["a"], "then": ["b"]}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no item": ({"rules": [{"if": ["a"], "then": []}]}, r"rules\[0\].then must have 1 to 20 different items"),
    "an item twice": ({"rules": [{"if": ["a", "a"], "then": ["b"]}]}, "different items"),
    "an item on both sides": ({"rules": [{"if": ["a"], "then": ["a"]}]}, "on both sides"),
    "no right side": ({"rules": [{"if": ["a"]}]}, r"rules\[0\]: then is missing"),
    "no mapping": ({"rules": ["a -> b"]}, r"rules\[0\] must be a mapping with keys such as if, then, support"),
    "an unknown key": ({"rules": [RULE | {"supprt": 3}]}, "did you mean 'support'"),
    "columns": ({"rules": [{"if": {"item": "a"}, "then": {"basket": "1"}}]}, "sides must be lists of items here"),
    "too many digits": ({"rules": [RULE], "confidence": 0.1234567}, "up to 6 digits"),
    "no support": ({"rules": [RULE], "support": 0}, "support must be a whole number of at least 1"),
}
CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "a model of classes": ({"privacy": [{"model": "k-anonymity", "k": 2}]}, r"ask for {model: hidden-rules} alone"),
    "another search": ({"algorithm": {"name": "mondrian"}}, "hidden-rules needs algorithm: hide-rules, not mondrian"),
    "a quasi-identifier": ({"roles": {"item": "quasi-identifier"}}, "not people"),
    "an identifier": ({"roles": {"basket": "identifier"}}, r"'basket' is left out of the release \(role: identifier\)"),
    "no other sets": ({"algorithm": BASKETS | {"method": "border", "most": 1}}, "write 2 or more"),
    "one column": ({"algorithm": {"name": "hide-rules", "item": "item"}}, "transaction and item go together"),
    "suppression": ({"suppression": 0.1}, "hide-rules does not use it"),
    "NULL as a value": ({"roles": {"item": {"role": "sensitive", "nulls": "value"}}}, "does not use nulls"),
    "a file": ({"release": {"file": "r.csv"}}, "a table is released"),
}


@pytest.mark.parametrize("name", [*REFUSED, *CHANGED])
def test_a_wrong_policy_is_refused_before_anything_is_opened(database: Database, name: str) -> None:
    changes, problem = REFUSED.get(name) or CHANGED[name]
    model = {"model": "hidden-rules", "support": 2, "confidence": 0.5, "rules": [RULE]}
    more = {"privacy": [model | changes]} if name in REFUSED else changes
    with pytest.raises(PolicyError, match=problem):
        hiding_policy(database, "nothing", COLUMNS, [RULE], **more)


def test_sensitive_columns_have_rules_too(database: Database) -> None:
    """Their `nulls` is written out when a policy is read, which nobody asked for."""
    table = database.create(COLUMNS, [(n, item) for n in range(3) for item in "ab"])
    policy = hiding_policy(database, table, COLUMNS, [RULE], roles={"item": {"role": "sensitive"}})
    assert hide(policy).rules[0].released_support == 1


def test_items_that_no_row_has_and_unknown_transactions_are_refused(database: Database) -> None:
    table = database.create(COLUMNS, [(1, "a"), (None, "b")])
    policy = hiding_policy(database, table, COLUMNS, [{"if": ["a"], "then": ["canary"]}])
    with pytest.raises(PolicyError) as refused:
        hide(policy)
    assert len(refused.value.problems) == 2
    assert "'basket' is NULL in 1 row, whose" in refused.value.problems[0]
    assert "privacy[0].rules[0].then: no row has a value of 'item' that it names" in refused.value.problems[1]
    assert "canary" not in str(refused.value)


def test_tables_without_rows_or_items(database: Database) -> None:
    """A rule that nothing can hold is refused; rows without an item stay, and no rule leads anywhere."""
    table = database.create(COLUMNS, [])
    with pytest.raises(PolicyError, match="no row has a value of 'item'"):
        hide(hiding_policy(database, table, COLUMNS, [RULE]))
    rows = [(1, "a"), (2, "b"), (3, None)]
    for method in ("shortest", "border", "exact"):
        table = database.create(COLUMNS, rows)
        result = hide(hiding_policy(database, table, COLUMNS, [RULE], 1, 0.1, algorithm=BASKETS | {"method": method}))
        assert (result.removed, result.rounds, [one.was_mined for one in result.rules]) == (0, 0, [False])
        assert Counter(database.sql(f"SELECT * FROM {table}_r")) == Counter(rows)


def test_spark_is_refused_by_name() -> None:
    model = {"model": "hidden-rules", "support": 2, "confidence": 0.5, "rules": [RULE]}
    roles = roles_of(dict.fromkeys(COLUMNS, "insensitive"))
    source = {"url": "spark:///local", "table": "t"}
    policy = build_policy(
        {"source": source, "release": {"table": "r"}, "attributes": roles, "privacy": [model], "algorithm": BASKETS}
        | {"catalog": {"url": "duckdb:///:memory:"}}
    )
    with pytest.raises(PolicyError, match="rules are not hidden on Spark"):
        hide(policy)
