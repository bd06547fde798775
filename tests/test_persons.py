"""Persons in place of rows: k, l and t count persons, as brute force over the released rows says."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sqlanon import check_policy, policy_risk, run_report
from sqlanon.algorithms.tree import allowable
from sqlanon.cli.summary import result_text
from sqlanon.cli.verification_text import verification_object
from sqlanon.encoding.distinct_tuples import count_tuples
from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.models import models_of
from sqlanon.plan.streams import stream_problems
from sqlanon.runs import source
from sqlanon.runs.dry_run.running import run_dry
from sqlanon.verification.release import verify_release
from tests.jobs_support import carry_out, frozen
from tests.rules_support import apply
from tests.run_support import OPTIONS, Database, Row, anonymize, duckdb_url, open_database
from tests.test_resuming import cleared, resumed, stopped

COLUMNS = {"who": "VARCHAR(9)", "age": "INTEGER", "town": "VARCHAR(9)", "ill": "VARCHAR(9)", "paid": "INTEGER"}
DRAWN = {"role": "identifier", "show": "surrogate"}
QUASI = {"role": "quasi-identifier"}
KEPT = {"ill": {"role": "sensitive"}, "paid": {"role": "sensitive"}}
ROLES: dict[str, Any] = {"who": DRAWN, "age": QUASI, "town": QUASI, **KEPT}
Classes = dict[Row, set[Any]]


def groups(rows: list[Row]) -> tuple[Classes, dict[Row, dict[Any, set[Any]]]]:
    """The persons of each released class, and of each of its illnesses; NULL is another person in each row."""
    persons: Classes = defaultdict(set)
    ill: dict[Row, dict[Any, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for place, (who, age, town, value, _) in enumerate(rows):
        person = ("row", place) if who is None else who
        persons[age, town].add(person)
        ill[age, town][value].add(person)
    return persons, ill


@st.composite
def changing_tables(draw: st.DrawFn) -> list[Row]:
    """Rows of persons, whose quasi-identifiers may be others in each."""
    row = st.tuples(
        st.sampled_from([None, *(f"p{n}" for n in range(9))]),
        st.integers(20, 29),
        st.sampled_from("abc"),
        st.sampled_from(["flu", "rash", None]),
        st.integers(1, 3),
    )
    return draw(st.lists(row, min_size=8, max_size=40))


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Rows of persons, whose quasi-identifiers are the same in all."""
    people = draw(st.lists(st.tuples(st.integers(20, 40), st.sampled_from("abc")), min_size=6, max_size=14))
    visits = st.tuples(st.sampled_from(["flu", "rash", "burn", None]), st.integers(1, 3))
    return [
        (None if number == 0 else f"p{number}", age, town, ill, paid)
        for number, (age, town) in enumerate(people)
        for ill, paid in draw(st.lists(visits, min_size=1, max_size=4))
    ]


def entropy(counts: Counter[Any]) -> float:
    total = sum(counts.values())
    return -sum(n / total * math.log(n / total) for n in counts.values())


def distance(counts: Counter[Any], of_all: Counter[Any]) -> float:
    here, there = sum(counts.values()), sum(of_all.values())
    return sum(abs(counts[v] / here - of_all[v] / there) for v in of_all) / 2


def persons_with(values: dict[Any, set[Any]]) -> Counter[Any]:
    return Counter({value: len(persons) for value, persons in values.items()})


def is_recursive(counts: Counter[Any], c: float, least: int) -> bool:
    ordered = sorted((n for value, n in counts.items() if value is not None), reverse=True)
    return bool(ordered) and ordered[0] + counts[None] < c * sum(ordered[least - 1 :])


K = {"model": "k-anonymity", "k": 3}
MODELS: dict[str, tuple[dict[str, Any], Callable[[Counter[Any], Counter[Any]], bool]]] = {
    "distinct": (
        {"model": "distinct-l-diversity", "attribute": "ill", "l": 2},
        lambda counts, _: len([value for value in counts if value is not None]) >= 2,
    ),
    "recursive": (
        {"model": "recursive-l-diversity", "attribute": "ill", "c": 3, "l": 2},
        lambda counts, _: is_recursive(counts, 3, 2),
    ),
    "closeness": (
        {"model": "t-closeness", "attribute": "ill", "t": 0.4},
        lambda counts, of_all: distance(counts, of_all) <= 0.4 + 1e-9,
    ),
    "of two columns": (
        {"model": "t-closeness", "attribute": "paid", "t": 0.5},
        lambda _, of_all: bool(of_all),
    ),
}
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)  # each case is a run, and tables are small as they are
CASES = {"deadline": None, "phases": UNSHRUNK, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
ORACLE = settings(max_examples=8, **CASES)


@ORACLE
@given(rows=tables())
def test_classes_hold_k_persons(database: Database, rows: list[Row]) -> None:
    roles = ROLES | {"who": DRAWN | {"nulls": "each"}}
    shown = database.release_once(COLUMNS, rows, roles, privacy=[K], subject="who")
    assert shown is not None
    assert Counter(row[3:] for row in shown) == Counter(row[3:] for row in rows)
    persons, _ = groups(shown)
    assert min(map(len, persons.values())) >= 3
    known = {who for who, *_ in rows} - {None}
    assert sum(map(len, persons.values())) == len(known) + sum(who is None for who, *_ in rows)


@ORACLE
@given(rows=tables(), name=st.sampled_from(sorted(MODELS)))
def test_sensitive_values_occur_as_often_as_persons_have_them(database: Database, rows: list[Row], name: str) -> None:
    model, holds = MODELS[name]
    roles = ROLES | {"who": DRAWN | {"nulls": "each"}}
    models = [K | {"k": 2}, model, *([MODELS["closeness"][0]] if name == "of two columns" else [])]
    shown = database.release_once(COLUMNS, rows, roles, privacy=models, subject="who")
    if shown is None:
        return
    persons, ill = groups(shown)
    assert min(map(len, persons.values())) >= 2
    of_all: Counter[Any] = Counter()
    for values in ill.values():
        of_all += persons_with(values)
    assert all(holds(persons_with(values), of_all) for values in ill.values())


def persons_by(rows: list[Row], column: int) -> dict[Any, set[Any]]:
    """The persons who have each value of a column in the whole table."""
    having: dict[Any, set[Any]] = defaultdict(set)
    for place, row in enumerate(rows):
        having[row[column]].add(("row", place) if row[0] is None else row[0])
    return having


@ORACLE
@given(rows=changing_tables(), k=st.integers(2, 4))
def test_classes_hold_k_persons_whose_rows_may_differ(database: Database, rows: list[Row], k: int) -> None:
    roles = ROLES | {"who": DRAWN | {"nulls": "each"}}
    shown = database.release_once(COLUMNS, rows, roles, privacy=[K | {"k": k}], subject="who")
    known = {who for who, *_ in rows} - {None}
    whole = len(known) + sum(who is None for who, *_ in rows)
    assert (shown is None) == (whole < k)
    if shown is not None:
        assert Counter(row[3:] for row in shown) == Counter(row[3:] for row in rows)
        persons, _ = groups(shown)
        assert min(map(len, persons.values())) >= k


@ORACLE
@given(rows=changing_tables(), name=st.sampled_from(sorted(MODELS)))
def test_values_of_persons_whose_rows_may_differ_meet_models(database: Database, rows: list[Row], name: str) -> None:
    model, holds = MODELS[name]
    roles = ROLES | {"who": DRAWN | {"nulls": "each"}}
    models = [K | {"k": 2}, model, *([MODELS["closeness"][0]] if name == "of two columns" else [])]
    shown = database.release_once(COLUMNS, rows, roles, privacy=models, subject="who")
    if shown is None:
        return
    persons, ill = groups(shown)
    assert min(map(len, persons.values())) >= 2
    of_all = persons_with(persons_by(rows, 3))
    assert all(holds(persons_with(values), of_all) for values in ill.values())


def test_many_rows_of_few_persons_make_no_class(database: Database) -> None:
    """Rows of one person hide nobody: by rows there would be two classes, by persons there is one."""
    rows = [(f"p{n % 2}", 20 + n % 2, "a", "flu", n) for n in range(20)]
    by_rows = database.release_once(COLUMNS, rows, ROLES, subject="none")
    by_persons = database.release_once(COLUMNS, rows, ROLES, subject="who")
    assert by_rows is not None
    assert by_persons is not None
    assert len({row[1] for row in by_rows}) == 2
    assert {row[1] for row in by_persons} == {"[20-21]"}


def test_a_value_of_one_person_is_one_however_many_rows_have_it(database: Database) -> None:
    """Nine rows of one person with flu, and one of another with a rash: each value is of one person in two."""
    rows = [("p0", 20, "a", "flu", n) for n in range(9)] + [("p1", 20, "a", "rash", 9)]
    diverse = {"model": "recursive-l-diversity", "attribute": "ill", "c": 1.5, "l": 2}
    assert database.release_once(COLUMNS, rows, ROLES, privacy=[diverse], subject="who") is not None
    assert database.release_once(COLUMNS, rows, ROLES, privacy=[diverse], subject="none") is None


def test_results_tell_of_persons(database: Database) -> None:
    rows = [(f"p{n % 6}", 20 + n % 6, "a", "flu", n) for n in range(24)]
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, ROLES, privacy=[K], subject="who")
    result = anonymize(policy)
    assert (result.release.rows, result.subject.persons) == (24, 6)
    assert result.release.min_class_size == 3
    assert result.risk.prosecutor_max == pytest.approx(1 / 3)
    assert result.source.figures.min_class_size == 1
    assert "24 rows of 6 persons" in result.subject.note
    assert {model.worst for model in result.models} == {3}


def test_the_risk_of_a_policy_is_of_its_persons(database_url: str) -> None:
    """Persons are at a greater risk than their rows, in the source and in the release."""
    rows = [(f"p{n // 3}", 20 + n // 12, "a", "flu", 1) for n in range(48)]
    with open_database(database_url) as database:
        table = database.create(COLUMNS, rows)
        policy = database.policy(table, ROLES, privacy=[K], subject="who")
        anonymize(policy)
        released = database.sql(f"SELECT count(DISTINCT who) FROM {table}_r GROUP BY age, town")
    measured = policy_risk(policy)
    assert measured.release is not None
    for one in (measured.source, measured.release):
        assert (one.rows, one.persons, one.subject) == (48, 16, "who")
    assert measured.source.prosecutor.max == 1 / 4
    assert measured.release.prosecutor.max == 1 / min(persons for (persons,) in released)


@ORACLE
@given(rows=changing_tables())
def test_risk_takes_rows_of_nobody_known_for_a_person_each(database_url: str, rows: list[Row]) -> None:
    with open_database(database_url) as database:
        table = database.create(COLUMNS, rows)
        policy = database.policy(table, ROLES | {"who": DRAWN | {"nulls": "each"}}, subject="who")
    measured = policy_risk(policy).source
    persons, _ = groups(rows)
    assert measured.persons == len(set().union(*persons.values()))
    assert measured.prosecutor.max == 1 / min(map(len, persons.values()))
    with open_database(database_url) as database:
        database.sql(f"DROP TABLE {table}")


def test_summary_page_and_json_name_persons_as_what_is_counted(tmp_path: Path) -> None:
    """Sixteen persons of three rows each: figures of classes are of persons wherever they are read, losses of rows."""
    rows = [(f"p{n // 3}", 20 + n // 12, "a", "flu", 1) for n in range(48)]
    with open_database(duckdb_url(tmp_path / "t.duckdb")) as database:
        policy = database.policy(database.create(COLUMNS, rows, "t"), ROLES, privacy=[K], subject="who")
        result = anonymize(policy)
    assert (result.as_json()["subject"]["unit"], policy_risk(policy).source.unit) == ("persons", "persons")
    assert verification_object(verify_release(policy), "t_r")["unit"] == "persons"
    assert (result.source.rows, result.release.class_sizes[0].rows) == (48, 16)
    summary = result_text(result, policy)
    assert "persons in a class: least 4" in summary
    assert "persons alone with their quasi-identifiers" in summary
    assert not re.search("rows (in a class|alone with)", summary)
    page = run_report(result.run, policy=policy, population=16)
    assert "persons in the smallest class" in page
    assert "Every class holds rows of at least 3 persons." in page
    assert "<h2>Persons, not rows</h2>" in page
    assert "Share of the persons whose risk is above so much." in page
    with pytest.raises(PolicyError, match="A population of 15 can't be: the release has 16 persons"):
        run_report(result.run, policy=policy, population=15)


@ORACLE
@given(rows=changing_tables(), k=st.integers(1, 3))
def test_bars_of_distributions_are_of_k_persons(database: Database, rows: list[Row], k: int) -> None:
    """Nobody has more rows than a bar stands for divided by the persons it has to be of."""
    rows = [row for row in rows if row[0] is not None] + [(f"p{n}", 20 + n, "a", "flu", 1) for n in range(3)]
    table = database.create(COLUMNS, rows)
    result = anonymize(database.policy(table, ROLES, privacy=[K | {"k": k}], subject="who"))
    for name in (table, f"{table}_r"):
        database.sql(f"DROP TABLE {name}")
    most = max(Counter(who for who, *_ in rows).values())
    assert result.distributions.least == 5 * most
    for column in result.distributions.columns:
        for bar in column.bars:
            assert not bar.before or bar.before * len(rows) >= min(5 * most, len(rows)) - 1e-2


def refused(database: Database, rows: list[Row], message: str, roles: Any = ROLES, **more: Any) -> None:
    table = database.create(COLUMNS, rows)
    with pytest.raises(PolicyError, match=message):
        database.release(table, roles, **{"subject": "who", **more})


ROWS = [(f"p{n % 4}", 20 + n % 4, "a", "flu", n) for n in range(12)]


def test_nulls_are_refused_with_their_number(database: Database) -> None:
    refused(database, [*ROWS, (None, 20, "a", "flu", 1)], "'who' is NULL in 1 of 13 rows")


MOVED = [*ROWS, *((f"p{n}", 30 + n % 4, "b", "rash", n) for n in (0, 1, 2, 3)), ("p4", 33, "b", "flu", 4)]


def test_results_tell_of_persons_in_several_classes(database_url: str) -> None:
    """Ages are cut behind 30: p0 has both of theirs below, three persons one on each side, and p4 one above."""
    with open_database(database_url) as database:
        table = database.create(COLUMNS, MOVED)
        policy = database.policy(table, ROLES, privacy=[K | {"k": 4}], subject="who")
        result = anonymize(policy)
        classes = database.sql(f"SELECT count(DISTINCT who) FROM {table}_r GROUP BY age, town ORDER BY 1")
    assert classes == [(4,), (4,)]
    assert (result.subject.persons, result.subject.in_several_classes) == (5, 3)
    assert "3 persons (60.0%) have rows in several classes" in result.subject.note
    assert "intersect" in result.subject.note
    assert (result.release.min_class_size, result.release.rows) == (4, 17)
    assert (result.source.figures.classes, result.source.figures.mean_class_size) == (8, 9 / 8)
    verified = verify_release(policy)
    assert verified.persons is not None
    assert (verified.persons.rows, verified.persons.persons, verified.persons.several) == (17, 5, 3)


@ORACLE
@given(rows=changing_tables(), k=st.integers(1, 3))
def test_what_singles_out_and_what_classes_tell_is_of_persons(database: Database, rows: list[Row], k: int) -> None:
    """Persons are alone with their age, and a class tells their illness, however many rows of theirs say so."""
    rows = [row for row in rows if row[0] is not None]
    rows += [(f"p{n}", 20 + n, "a", "flu", 1) for n in range(3)] + [("p0", 21, "b", "flu", 1)]
    table = database.create(COLUMNS, rows)
    result = anonymize(database.policy(table, ROLES, privacy=[K | {"k": k}], subject="who"))
    shown = database.sql(f"SELECT * FROM {table}_r")
    for name in (table, f"{table}_r"):
        database.sql(f"DROP TABLE {name}")
    of_age = persons_by(rows, 1)
    alone = sum(len(who) == 1 for who in of_age.values()) / sum(map(len, of_age.values()))
    measured = {one.columns: one.unique for one in result.combinations.best}
    assert measured["age",] == pytest.approx(alone, abs=1e-4)
    classes = [
        (len(set().union(*known)), max(map(len, known)))
        for values in groups(shown)[1].values()
        if (known := [who for value, who in values.items() if value is not None])
    ]
    told = result.disclosure[0]
    assert (told.attribute, told.rows) == ("ill", sum(n for n, _ in classes))
    assert told.one_value == sum(n for n, most in classes if most == n)
    assert told.confidence == pytest.approx(max(most / n for n, most in classes))
    assert told.above_50 == sum(n for n, most in classes if most > 0.5 * n)


def test_a_tree_that_takes_tuples_for_persons_is_not_published(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two persons with ten tuples each: sizes of children are of tuples, and the staged table is judged by persons."""
    rows = [(f"p{n // 10}", 20 + n, "a", "flu", n) for n in range(20)]
    monkeypatch.setattr(allowable, "list_splits_short_of_persons", lambda *_: (None, []))
    table = database.create(COLUMNS, rows)
    with pytest.raises(VerificationError, match="k-anonymity"):
        database.release(table, ROLES, subject="who")


LEVELS = {"hierarchy": {"intervals": [5, 10]}}
GROUPED = ROLES | {"who": DRAWN | {"nulls": "each"}, "age": QUASI | LEVELS, "town": QUASI | {"hierarchy": "suppress"}}
OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **{
        name: ({"name": name}, GROUPED)
        for name in ("incognito", "samarati", "bottom-up", "optimal", "datafly", "top-down")
    },
    "rothko-t": ({"name": "rothko-t"}, ROLES | {"who": DRAWN | {"nulls": "each"}}),
    "by gain": (
        {"name": "rothko-t", "split": "information-gain", "target": "ill"},
        ROLES | {"who": DRAWN | {"nulls": "each"}},
    ),
    "rothko-s": ({"name": "rothko-s", "sample": 10, "exact_below": 0}, ROLES | {"who": DRAWN | {"nulls": "each"}}),
    "microaggregation": (
        {"name": "microaggregation"},
        ROLES | {"who": DRAWN | {"nulls": "each"}, "town": {"role": "insensitive"}},
    ),
}


@pytest.mark.parametrize("name", sorted(OTHERS))
@settings(max_examples=3, **CASES)
@given(rows=changing_tables(), k=st.integers(2, 4), suppression=st.sampled_from([0, 0.3]))
def test_every_algorithm_makes_classes_of_k_persons(
    database: Database, name: str, rows: list[Row], k: int, suppression: float
) -> None:
    """Whatever searches by rows is judged by the persons behind them, and may suppress its share of the rows."""
    algorithm, roles = OTHERS[name]
    suppresses = name in ("incognito", "samarati", "bottom-up", "optimal", "datafly") and suppression
    more = {"suppression": suppression} if suppresses else {}
    diverse = {"model": "distinct-l-diversity", "attribute": "ill", "l": 2}
    models = [K | {"k": k}, *([diverse] if k == 3 else [])]
    shown = database.release_once(COLUMNS, rows, roles, privacy=models, subject="who", algorithm=algorithm, **more)
    if shown is None:
        return
    classes = [row if name != "microaggregation" else (*row[:2], None, *row[3:]) for row in shown]
    persons, ill = groups(classes)
    assert min(map(len, persons.values())) >= k
    assert k != 3 or all(len(set(values) - {None}) >= 2 for values in ill.values())
    if not suppresses:
        assert Counter(row[3:] for row in shown) == Counter(row[3:] for row in rows)
    assert len(shown) >= (1 - suppression) * len(rows)


@pytest.mark.in_turns(2)
@pytest.mark.parametrize("stars", ["star", {"star": "unprotected"}], ids=["judged", "unprotected"])
@settings(max_examples=6, **CASES)
@given(rows=changing_tables(), k=st.integers(2, 4), name=st.sampled_from(["optimal", "bottom-up", "datafly"]))
def test_starred_rows_are_a_class_of_their_persons(
    database: Database, rows: list[Row], k: int, name: str, stars: Any
) -> None:
    """Several rows of one person with stars count once; those who are alone among them are told of."""
    table = database.create(COLUMNS, rows)
    more = {"suppression": 0.4, "suppressed": stars, "algorithm": {"name": name}, "privacy": [K | {"k": k}]}
    try:
        result = anonymize(database.policy(table, GROUPED, subject="who", **more))
        shown = database.sql(f"SELECT * FROM {table}_r")
    except ProtectionError:
        return
    finally:
        database.sql(f"DROP TABLE IF EXISTS {table}_r")
        database.sql(f"DROP TABLE {table}")
    persons, _ = groups(shown)
    sizes = {shows: len(who) for shows, who in persons.items()}
    starred = [row for row in shown if row[1:3] == ("*", "*")] if result.starred else []
    assert len(shown) == len(rows) == result.release.rows
    assert result.release.suppressed == (result.starred.rows if result.starred else 0) == len(starred)
    assert len(starred) <= 0.4 * len(rows)
    assert (result.release.min_class_size, result.risk.prosecutor_max) == (
        min(sizes.values()),
        1 / min(sizes.values()),
    )
    alone = {shows: n for shows, n in sizes.items() if n < k}
    if not starred or stars == "star":
        assert not alone
    elif alone:
        assert list(alone) == [("*", "*")]
        assert result.starred.violate == ("k-anonymity",)
        assert f"suppressed rows of {alone['*', '*']} persons" in result.starred.note


def test_stars_of_one_person_are_no_class(database: Database) -> None:
    """Five rows of one person in another town: as a class of stars they are one person, however many rows."""
    rows = [(f"p{n % 6}", 20, "a", "flu", n) for n in range(12)] + [("p9", 29, "b", "flu", n) for n in range(5)]
    levels = GROUPED | {"town": QUASI | {"hierarchy": "suppress"}, "age": QUASI | {"hierarchy": {"intervals": [5]}}}
    more: dict[str, Any] = {"algorithm": {"name": "optimal"}, "suppression": 0.3, "privacy": [K | {"k": 2}]}
    table = database.create(COLUMNS, rows)
    told = anonymize(database.policy(table, levels, subject="who", suppressed={"star": "unprotected"}, **more))
    assert (told.starred.rows, told.starred.violate) == (5, ("k-anonymity",))
    assert told.release.min_class_size == 1
    judged = anonymize(database.policy(table, levels, subject="who", suppressed="star", **more), replace=True)
    assert judged.release.min_class_size >= 2
    assert judged.release.suppressed == 0


CLOSE = {"model": "t-closeness", "attribute": "ill", "t": 0.4}


@pytest.mark.parametrize("algorithm", ["rothko-t", "optimal", "top-down", "microaggregation"])
def test_algorithms_that_count_rows_refuse_shares_of_persons_by_name(database: Database, algorithm: str) -> None:
    message = f"{algorithm} counts rows, by which t-closeness can't be judged of persons"
    refused(database, ROWS, message, algorithm={"name": algorithm}, privacy=[K, CLOSE])


@pytest.mark.parametrize("algorithm", ["condensation", "r-gather"])
def test_algorithms_that_release_no_row_of_anybody_refuse_persons_by_name(database: Database, algorithm: str) -> None:
    refused(database, ROWS, f"subject: {algorithm} releases no row of anybody", algorithm={"name": algorithm})


ALPHA = {"model": "alpha-k", "attribute": "ill", "alpha": 0.9, "k": 2}
WRONG = [
    (ROLES, {"privacy": [ALPHA]}, "alpha-k counts rows with a sensitive value, and not persons"),
    (ROLES, {"subject": "whom"}, "'whom' is not among the attributes; did you mean"),
    (ROLES, {"subject": "ill"}, "'ill' tells persons apart: its role must be identifier"),
    (ROLES | {"paid": {"role": "identifier", "nulls": "each"}}, {}, "nulls: each is for the subject"),
]


@pytest.mark.parametrize(("roles", "more", "message"), WRONG)
def test_what_is_no_subject_is_refused(database: Database, roles: Any, more: Any, message: str) -> None:
    refused(database, ROWS, message, roles, **more)


def test_a_subject_of_single_rows_is_warned_of(database: Database) -> None:
    table = database.create(COLUMNS, ROWS[:4])
    result = anonymize(database.policy(table, ROLES, subject="who"))
    plan = check_policy(database.policy(table, ROLES, subject="who"), replace=True, options=OPTIONS)
    assert plan.repetition.sentence == "Persons are counted, not rows: those that 'who' tells apart."
    assert any("no value of 'who' is in two rows" in warning for warning in result.warnings)


def test_more_persons_than_there_are_can_not_be_met(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(ProtectionError, match="k: 4"):
        database.release(table, ROLES, privacy=[{"model": "k-anonymity", "k": 5}], subject="who")


def test_a_tree_that_counts_rows_is_not_published(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is told that it counts persons, and gets rows: the check of the staged table counts for itself."""

    def of_rows(engine: Any, workspace: Any, coded: Any, *_: Any) -> Any:
        return count_tuples(engine, workspace, coded, coded.quasi_identifiers)

    monkeypatch.setattr(source, "count_persons", of_rows)
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(VerificationError, match="k-anonymity"):
        database.release(table, ROLES, subject="who")


def test_a_lattice_search_that_counts_rows_is_not_published(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty rows of two persons: by rows each age is a class of ten, and the staged table is judged by persons."""
    rows = [(f"p{n % 2}", 20 + n % 2, "a", "flu", n) for n in range(20)]
    monkeypatch.setattr(source, "models_by_rows", models_of)
    table = database.create(COLUMNS, rows)
    with pytest.raises(VerificationError, match="k-anonymity"):
        database.release(table, GROUPED, subject="who", algorithm={"name": "optimal"})


def test_a_published_table_that_lost_a_person_fails_its_check(tmp_path: Path) -> None:
    url = duckdb_url(tmp_path / "t.duckdb")
    with open_database(url) as database:
        policy = database.policy(database.create(COLUMNS, ROWS, "t"), ROLES, subject="who")
        anonymize(policy)
    assert verify_release(policy).satisfied
    with open_database(url) as database:
        ((one, other),) = database.sql("SELECT min(who), max(who) FROM t_r WHERE age = (SELECT min(age) FROM t_r)")
        database.sql("UPDATE t_r SET who = ? WHERE who = ?", [one, other])
    verified = verify_release(policy)
    assert [model.worst for model in verified.models] == [1]
    assert not verified.satisfied


@pytest.mark.parametrize("shown", [DRAWN, {"role": "identifier"}])
def test_a_dry_run_refuses_persons_by_name(database: Database, shown: Any) -> None:
    policy = database.policy(database.create(COLUMNS, ROWS), ROLES | {"who": shown}, subject="who")
    with pytest.raises(PolicyError, match="subject: a dry run counts rows, and not the persons of 'who'"):
        run_dry(policy, OPTIONS)


def test_a_procedure_refuses_persons_by_name(database: Database) -> None:
    if database.engine == "duckdb":
        return
    table = database.create(COLUMNS, ROWS)
    made = anonymize(database.policy(table, ROLES, subject="who"))
    with pytest.raises(PolicyError, match="subject: a procedure counts rows, and not the persons of 'who'"):
        frozen(database, made.run)


@ORACLE
@given(rows=changing_tables(), later=changing_tables(), name=st.sampled_from(["mondrian", "optimal", "top-down"]))
def test_rules_are_applied_to_persons(database: Database, rows: list[Row], later: list[Row], name: str) -> None:
    """Later rows are recoded by the rules of a run; classes of too few persons are left out, or nothing is released."""
    table, other = database.create(COLUMNS, rows), database.create(COLUMNS, later)
    policy = database.policy(table, GROUPED, privacy=[K | {"k": 2}], subject="who", algorithm={"name": name})
    try:
        made = anonymize(policy)
        apply(database, made.run, other, f"{other}_again")
        persons, _ = groups(database.sql(f"SELECT * FROM {other}_again"))
        assert min(map(len, persons.values())) >= 2
    except ProtectionError:
        pass
    for made_table in (table, other, f"{table}_r", f"{other}_again"):
        database.sql(f"DROP TABLE IF EXISTS {made_table}")


def test_jobs_apply_rules_to_persons(database: Database) -> None:
    table = database.create(COLUMNS, MOVED)
    made = anonymize(database.policy(table, ROLES, subject="who"))
    frozen(database, made.run, procedure=False)
    database.sql(f"INSERT INTO {table} VALUES ('p5', 20, 'a', 'flu', 1)")
    carry_out(database)
    counts = database.sql(f"SELECT count(DISTINCT who) FROM {table}_r GROUP BY age, town")
    assert min(persons for (persons,) in counts) >= 2


def test_rules_are_not_applied_where_shares_are_of_persons(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    made = anonymize(database.policy(table, ROLES, privacy=[K | {"k": 2}, CLOSE | {"t": 0.9}], subject="who"))
    for act in (lambda: frozen(database, made.run), lambda: apply(database, made.run, table, f"{table}_again")):
        with pytest.raises(PolicyError, match="counts rows, by which t-closeness can't be judged of the persons"):
            act()


def test_a_stopped_run_goes_on_with_persons_and_the_same_pseudonyms(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLANON_TEST_KEY", "a key of more than sixteen bytes")
    named = {"role": "identifier", "show": "pseudonym", "key": "${SQLANON_TEST_KEY}"}
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES | {"who": named}, subject="who")
    anonymize(policy)
    expected = database.sql(f"SELECT * FROM {table}_r")
    result = resumed(policy, stopped(policy, "verify", monkeypatch))
    assert result.resumed is not None
    assert result.resumed.reused
    assert result.subject.persons == 4
    assert database.sql(f"SELECT * FROM {table}_r") == expected
    cleared(database, policy)


def test_streams_refuse_persons_and_pseudonyms_by_name() -> None:
    database = Database("duckdb:///t.duckdb", None, "")
    policy = database.policy("t", ROLES, subject="who", algorithm={"name": "condensation"})
    problems = " ".join(stream_problems(policy, "job"))
    assert "subject: a stream counts rows" in problems
    assert "attributes.who: a stream releases no row of anybody" in problems
