"""km-anonymity of persons: whoever knows any m of their rows has k persons, as brute force over all sets says."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlanon import policy_risk, run_report
from sqlanon.algorithms.tree import merging
from sqlanon.catalog import Catalog
from sqlanon.cli.risk_text import policy_text, singled_text
from sqlanon.cli.summary import result_text, verification_text
from sqlanon.encoding.frequency import joined_rows
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.jobs.dbt.project import project_files
from sqlanon.jobs.freezing import Freezing
from sqlanon.models import KmAnonymity
from sqlanon.report.risk_page import render_risk
from sqlanon.results.measures import SingledOut
from sqlanon.sql import Relation
from sqlanon.verification import class_sets
from sqlanon.verification.release import verify_release
from sqlanon.verification.verify import verify_table
from tests.jobs_support import frozen
from tests.persons_support import COLUMNS, DRAWN, GROUPED, ORACLE, ROLES, K, changing_tables, groups
from tests.rules_support import apply
from tests.run_support import Database, Row, anonymize, duckdb_url, open_database
from tests.test_resuming import resumed, stopped

pytestmark = pytest.mark.slow

KM: dict[str, Any] = {"model": "km-anonymity", "k": 3, "m": 2}
LATTICE = ("optimal", "incognito", "datafly", "samarati", "bottom-up")
KNOWN_OR_NOT = GROUPED | {"who": DRAWN | {"nulls": "each"}}
ALGORITHMS = ("mondrian", *LATTICE)


def classes_by_person(rows: list[Row]) -> dict[Any, set[Row]]:
    """The classes of each person; NULL is another person in each row."""
    classes: dict[Any, set[Row]] = defaultdict(set)
    for place, (who, age, town, *_) in enumerate(rows):
        classes[("row", place) if who is None else who].add((age, town))
    return classes


def supports(rows: list[Row], m: int) -> Counter[frozenset[Row]]:
    """Count the persons who have each set of up to `m` classes that somebody has."""
    return Counter(
        frozenset(chosen)
        for classes in classes_by_person(rows).values()
        for size in range(1, m + 1)
        for chosen in itertools.combinations(sorted(classes, key=str), size)
    )


def is_km_anonymous(rows: list[Row], k: int, m: int) -> bool:
    return min(supports(rows, m).values(), default=k) >= k


def singled(rows: list[Row]) -> SingledOut:
    """Persons that are alone with one, two and three classes at most, and with all of theirs."""
    classes = classes_by_person(rows)
    whole = Counter(frozenset(one) for one in classes.values())

    def alone(m: int) -> int:
        had = supports(rows, m)
        return sum(
            any(had[frozenset(c)] == 1 for n in range(1, m + 1) for c in itertools.combinations(one, n))
            for one in classes.values()
        )

    return SingledOut(
        len(classes), alone(1), alone(2), alone(3), sum(whole[frozenset(one)] == 1 for one in classes.values())
    )


@pytest.mark.parametrize("name", ALGORITHMS)
@ORACLE
@given(rows=changing_tables(), k=st.integers(1, 4), m=st.integers(1, 4), suppression=st.sampled_from([0, 0.4]))
def test_sets_of_classes_are_those_of_k_persons(
    database: Database, name: str, rows: list[Row], k: int, m: int, suppression: float
) -> None:
    suppression = 0 if name == "mondrian" else suppression
    given = {"privacy": [KM | {"k": k, "m": m}], "algorithm": {"name": name}, "suppression": suppression}
    shown = database.release_once(COLUMNS, rows, KNOWN_OR_NOT, subject="who", **given)
    if shown is None:
        assert len(classes_by_person(rows)) < k
        return
    assert is_km_anonymous(shown, k, m)
    assert len(shown) >= len(rows) - int(suppression * len(rows))


def visits(persons: int, each: int) -> list[Row]:
    """Visits of persons, each at an age and in a town of their own choice."""
    draw = random.Random(1)
    return [
        (f"p{n}", draw.randrange(20, 60), draw.choice("abcd"), "flu", 1) for n in range(persons) for _ in range(each)
    ]


def test_classes_of_k_persons_single_nearly_everybody_out_by_sets_of_them(database: Database) -> None:
    """Each class has five persons, and nearly all sets of classes are of one; pairs are of three with the model."""
    rows, k = visits(120, 8), K | {"k": 5}
    table = database.create(COLUMNS, rows)
    shown = database.release(table, GROUPED, privacy=[k], subject="who")
    assert is_km_anonymous(shown, 5, 1)
    alone = singled(shown)
    assert (alone.by_1, alone.by_all) == (0, 120)
    assert (alone.by_2 or 0) > 60
    together = database.release(table, GROUPED, privacy=[k, KM], subject="who")
    assert is_km_anonymous(together, 3, 2)
    assert singled(together).by_2 == 0
    assert 1 < len({row[1:3] for row in together}) < len({row[1:3] for row in shown})
    assert Counter(row[3:] for row in together) == Counter(row[3:] for row in rows)


@pytest.mark.parametrize(
    ("algorithm", "suppression", "classes", "left"),
    [("mondrian", 0, 7, 800), ("optimal", 0.3, 11, 588), ("datafly", 0, 4, 800)],
)
def test_engines_come_to_the_same_classes(
    database: Database, algorithm: str, suppression: float, classes: int, left: int
) -> None:
    table = database.create(COLUMNS, visits(200, 4))
    given = {"algorithm": {"name": algorithm}, "suppression": suppression, "subject": "who"}
    shown = database.release(table, GROUPED, privacy=[KM | {"k": 5}], **given)
    assert is_km_anonymous(shown, 5, 2)
    assert (len({row[1:3] for row in shown}), len(shown)) == (classes, left)


@pytest.mark.parametrize("algorithm", ["mondrian", "optimal"])
def test_persons_of_one_class_are_k_anonymous(database: Database, algorithm: str) -> None:
    """Persons of one row each have no two classes: whatever m is, the release is that of k-anonymity."""
    rows = [(f"p{n}", 20 + n % 40, "abcd"[n % 4], "flu", n) for n in range(40)]
    given = {"algorithm": {"name": algorithm}, "subject": "who"}
    table = database.create(COLUMNS, rows)
    shown = [
        sorted(row[1:] for row in database.release(table, GROUPED, privacy=[model], **given))
        for model in (KM | {"m": 10}, KM | {"m": 1}, K)
    ]
    assert shown[0] == shown[1] == shown[2]
    assert len({row[:2] for row in shown[0]}) > 1


@pytest.mark.parametrize("algorithm", ["mondrian", "optimal"])
@ORACLE
@given(rows=changing_tables(), diverse=st.integers(1, 2))
def test_other_models_hold_beside_it(database: Database, algorithm: str, rows: list[Row], diverse: int) -> None:
    """Classes that are merged are nodes of the tree, each of which satisfied the other models; a run verifies all."""
    more = {"model": "distinct-l-diversity", "attribute": "ill", "l": diverse}
    given = {"algorithm": {"name": algorithm}, "subject": "who"}
    shown = database.release_once(COLUMNS, rows, KNOWN_OR_NOT, privacy=[KM | {"k": 2}, more], **given)
    if shown is None:
        return
    persons, ill = groups(shown)
    assert is_km_anonymous(shown, 2, 2)
    assert min(map(len, persons.values())) >= 2
    assert all(len(set(values) - {None}) >= diverse for values in ill.values())


@pytest.mark.parametrize("ranges", ["observed", "cuts"])
def test_a_stopped_run_goes_on_with_the_classes_that_were_merged(
    database: Database, monkeypatch: pytest.MonkeyPatch, ranges: str
) -> None:
    """The rules are those of what is left of the tree; from cut to cut all is done anew, as always."""
    table = database.create(COLUMNS, visits(200, 4))
    policy = database.policy(table, ROLES, privacy=[KM | {"k": 5}], subject="who", ranges=ranges)
    result = resumed(policy, stopped(policy, "verify", monkeypatch))
    shown = database.sql(f"SELECT * FROM {table}_r")
    assert result.resumed is not None
    assert result.resumed.reused is (ranges == "observed")
    assert is_km_anonymous(shown, 5, 2)
    assert 1 < len({row[1:3] for row in shown}) == result.release.classes


@pytest.mark.parametrize("algorithm", ["mondrian", "datafly"])
@pytest.mark.parametrize("show", [{}, {"show": "surrogate"}])
def test_odd_names_and_persons_who_are_not_shown(database: Database, algorithm: str, show: dict[str, str]) -> None:
    columns = {'who"s': "VARCHAR(9)", "age; --": "INTEGER", "Town {}": "VARCHAR(9)", "nr": "INTEGER"}
    rows = [(who, age, town, number) for number, (who, age, town, *_) in enumerate(visits(20, 4))]
    roles = {
        'who"s': {"role": "identifier", **show},
        "age; --": GROUPED["age"],
        "Town {}": GROUPED["town"],
        "nr": "insensitive",
    }
    table = database.create(columns, rows)
    given = {"algorithm": {"name": algorithm}, "subject": 'who"s'}
    shown = database.release(table, roles, privacy=[KM], **given)
    whose = {row[3]: row[0] for row in rows}
    assert is_km_anonymous([(whose[row[-1]], *row[-3:-1]) for row in shown], 3, 2)
    assert len(shown) == len(rows)


def test_more_persons_than_there_are_can_not_be_met(database: Database) -> None:
    table = database.create(COLUMNS, visits(6, 5))
    for algorithm in ("mondrian", "optimal"):
        given = {"algorithm": {"name": algorithm}, "subject": "who"}
        with pytest.raises(ProtectionError, match=r"km-anonymity \(k: 7, m: 2\).*\n?.*k: 6"):
            database.release(table, GROUPED, privacy=[KM | {"k": 7}], **given)


STARS = {"algorithm": {"name": "optimal"}, "suppression": 0.1}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"subject": "none"}, "name that column with `subject`"),
    ({"algorithm": {"name": "rothko-t"}}, "rothko-t decides class by class; choose mondrian, incognito"),
    ({"algorithm": {"name": "top-down"}}, "top-down decides class by class"),
    (STARS | {"suppressed": "star"}, "write suppressed: omit"),
    (STARS | {"remainder": "recode"}, "leave remainder out"),
]


@pytest.mark.parametrize(("more", "message"), WRONG)
def test_what_decides_class_by_class_is_refused(database: Database, more: dict[str, Any], message: str) -> None:
    table = database.create(COLUMNS, visits(6, 5))
    with pytest.raises(PolicyError, match=message):
        database.release(table, GROUPED, privacy=[KM], **{"subject": "who", **more})


def test_rules_jobs_and_dbt_are_refused(database: Database) -> None:
    table = database.create(COLUMNS, visits(20, 4))
    run = anonymize(database.policy(table, GROUPED, privacy=[KM], subject="who")).run
    refused = "judges classes one by one, and km-anonymity all classes of a person together"
    with pytest.raises(PolicyError, match=refused):
        apply(database, run, table, f"{table}_again")
    with pytest.raises(PolicyError, match=refused):
        frozen(database, run)
    with connect(database.url) as engine, Catalog.open(engine) as catalog, pytest.raises(PolicyError, match=refused):
        project_files(engine, catalog, catalog.run(run), Freezing("model"))


def test_stars_that_no_model_judges_are_left_out_of_sets(database: Database) -> None:
    table = database.create(COLUMNS, visits(200, 4))
    given = {"algorithm": {"name": "optimal"}, "suppression": 0.3, "suppressed": {"star": "unprotected"}}
    shown = database.release(table, GROUPED, privacy=[KM], subject="who", **given)
    starred = [row for row in shown if row[1:3] == ("*", "*")]
    assert (len(starred), len(shown)) == (35, 800)
    assert is_km_anonymous([row for row in shown if row not in starred], 3, 2)
    assert not is_km_anonymous(shown, 3, 2)


@pytest.mark.parametrize("algorithm", ["mondrian", "optimal"])
def test_a_search_that_looks_at_single_classes_is_not_published(
    database: Database, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    """The check of the staged table counts sets of classes for itself."""
    monkeypatch.setattr(merging, "persons_of_sets", lambda _: {})
    monkeypatch.setattr(joined_rows, "persons_of_sets", lambda _: {})
    table = database.create(COLUMNS, visits(60, 5))
    with pytest.raises(VerificationError, match="km-anonymity"):
        database.release(table, GROUPED, privacy=[KM], subject="who", algorithm={"name": algorithm})
    assert database.leftovers() == []


def test_a_published_table_is_verified_by_its_sets(database_url: str) -> None:
    with open_database(database_url) as database:
        table = database.create(COLUMNS, visits(200, 4))
        policy = database.policy(table, GROUPED, privacy=[K, KM | {"k": 5}, KM | {"m": 3, "k": 1}], subject="who")
        result = anonymize(policy)
        shown = database.sql(f"SELECT * FROM {table}_r")
    pairs, triples = supports(shown, 2), supports(shown, 3)
    assert verify_release(policy).models == result.models
    assert [model.worst for model in result.models][1:] == [min(pairs.values()), min(triples.values())]
    one, other = max(sorted(pair) for pair in pairs if len(pair) == 2)
    having = [who for who, classes in classes_by_person(shown).items() if {one, other} <= classes]
    with open_database(database_url) as database:
        for who in having[4:]:
            database.sql(f"DELETE FROM {table}_r WHERE who = ? AND age = ? AND town = ?", [who, *one])
        shown = database.sql(f"SELECT * FROM {table}_r")
    (_, of_pairs, of_triples), pairs = verify_release(policy).models, supports(shown, 2)
    short = [n for n in pairs.values() if n < 5]
    assert not of_pairs.satisfied
    assert (of_pairs.worst, of_pairs.violations, of_pairs.violating_rows) == (min(short), len(short), sum(short))
    assert of_triples.satisfied


def test_summary_verdict_page_and_risk_tell_who_is_alone(tmp_path: Path) -> None:
    with open_database(duckdb_url(tmp_path / "t.duckdb")) as database:
        policy = database.policy(database.create(COLUMNS, visits(120, 8), "t"), GROUPED, privacy=[K], subject="who")
        result = anonymize(policy)
        alone = singled(database.sql("SELECT * FROM t_r"))
    line = f"nown by {singled_text(alone)}"
    verified, both = verify_release(policy), policy_risk(policy)
    assert re.match("nown by 1 of their rows: 0 % of persons are alone; by 2: .+ %; by 3: .+ %; by all: .+ %", line)
    assert f"k{line}\n" in result_text(result, policy)
    assert f"K{line}.\n" in verification_text(verified, "t_r")
    assert f"K{line}.\n" in policy_text(both)
    told = {"persons": 120, "by_1": 0, "by_2": alone.by_2, "by_3": alone.by_3, "by_all": alone.by_all}
    assert result.as_json()["subject"]["singled_out"] == told == verified.as_json()["singled_out"]
    assert both.as_json()["release"]["singled_out"] == told
    of_run, of_risk = run_report(result.run, policy=policy), render_risk(both, "t")
    assert "Known by 1 of their rows, 0 % of the persons are alone; by 2: " in of_run
    assert "Known by 1 of their rows, 0 % of the persons are alone; by 2: " in of_risk


def test_sets_of_classes_that_have_the_same_values_are_told_apart(database: Database) -> None:
    """Two persons have the same ages and towns, in other classes; two more have all of these classes."""
    rows = [("p0", 20, "a"), ("p0", 30, "b"), ("p1", 20, "b"), ("p1", 30, "a")]
    rows += [(who, age, town) for who in ("p2", "p3") for age in (20, 30) for town in "ab"]
    table = database.create({"who": "VARCHAR(9)", "age": "INTEGER", "town": "VARCHAR(9)"}, rows)
    with connect(database.url) as engine:
        persons = verify_table(engine, Relation.parse(table), ["age", "town"], [], person="who").persons
    assert persons is not None
    assert persons.singled == singled([(*row, "", 0) for row in rows]) == SingledOut(4, 0, 0, 0, 2)


def test_sets_of_too_many_classes_are_not_counted(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two persons of eight classes each, twenty-eight pairs and fifty-six triples of a person."""
    monkeypatch.setattr(class_sets, "FEW_SETS", 60)
    monkeypatch.setattr(class_sets, "SETS_PER_ROW", 1)
    table = database.create({"who": "INTEGER", "age": "INTEGER"}, [(n % 2, n // 2) for n in range(16)])
    with connect(database.url) as engine:
        persons = verify_table(engine, Relation.parse(table), ["age"], [], person="who").persons
    assert persons is not None
    assert persons.singled == SingledOut(2, 0, 0, None, 0)
    assert singled_text(persons.singled).endswith("by 2: 0 %; by 3: not counted; by all: 0 %")


def test_tables_without_rows_or_persons(database: Database) -> None:
    """No person, no set; and where nobody tells whose rows are, the model can't be judged."""
    table = database.create(COLUMNS, [])
    with connect(database.url) as engine:
        place = Relation.parse(table)
        assert verify_table(engine, place, ["age"], [KmAnonymity(3, 2)], person="who").satisfied
        with pytest.raises(PolicyError, match="name the column that tells persons apart"):
            verify_table(engine, place, ["age"], [KmAnonymity(3, 2)])


@ORACLE
@given(rows=changing_tables(), k=st.integers(1, 3))
def test_persons_who_are_alone_with_some_of_their_rows_are_counted(database_url: str, rows: list[Row], k: int) -> None:
    rows = [*rows, *((f"p{n}", 20, "a", "flu", 1) for n in range(3))]
    with open_database(database_url) as database:
        table = database.create(COLUMNS, rows)
        policy = database.policy(
            table, KNOWN_OR_NOT, privacy=[K | {"k": k}], subject="who", algorithm={"name": "datafly"}
        )
        told = anonymize(policy).subject
        shown = database.sql(f"SELECT * FROM {table}_r")
    verified, both = verify_release(policy), policy_risk(policy)
    assert both.release is not None
    assert verified.persons is not None
    assert told is not None
    assert told.singled_out == verified.persons.singled == both.release.singled_out == singled(shown)
    assert both.source.singled_out == singled(rows)
