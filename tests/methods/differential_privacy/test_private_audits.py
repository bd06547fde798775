"""Audits of differential privacy: of each algorithm, on both engines, and of mutants, which all must be found."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.embedded import EMBEDDED
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.mechanisms.charges import NOISE
from sqlanon.mechanisms.mechanisms import OpenDP
from sqlanon.methods.differential_privacy import release as counts
from sqlanon.methods.differential_privacy.drawing.accounting import schedule_of
from sqlanon.methods.differential_privacy.drawing.drawing import draw_counts
from sqlanon.methods.differential_privacy.mechanism_audit.findings import Finding
from sqlanon.methods.differential_privacy.mechanism_audit.generating import GeneratedTable, generate_table
from sqlanon.methods.differential_privacy.mechanism_audit.mechanisms_audit import (
    audit_account,
    audit_changes,
    audit_charges,
    audit_mechanisms,
    audit_neighbours,
    audit_schedule,
)
from sqlanon.methods.differential_privacy.mechanism_audit.recording import ConstantDraws, Request, change
from sqlanon.methods.differential_privacy.mechanism_audit.sampling import audit_samples, least_probability, lower_bound
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.release import NoisyCounts
from sqlanon.sql import Relation
from tests.methods.differential_privacy.test_private import ATTRIBUTES, CLASSES, COLUMNS, rows_of
from tests.private_mutants import MUTANTS, cells_of_32_bits
from tests.private_support import Ample, Known, draw, planned, private_policy
from tests.run_support import OPTIONS, Database, PlainWorkspace

pytestmark = pytest.mark.slow

DIFFGEN = {"name": "diffgen", "target": "pay", "specializations": 4}
PERSONS = {"column": "person", "rows": 2}


@pytest.fixture(scope="module")
def memory() -> Iterator[Engine]:
    with connect("duckdb:///:memory:") as engine:
        yield engine


def failed(findings: Sequence[Finding]) -> list[str]:
    return [f"{one.tried}: {one.measured}" for one in findings if not one.passed]


def requests_of(
    engine: Engine, columns: Mapping[str, str], rows: list[Any], attributes: Mapping[str, Any], **more: Any
) -> list[Request]:
    """All that a draw over these rows asks for, each of it charged."""
    draws, workspace = ConstantDraws(), PlainWorkspace(engine)
    with planned(engine, columns, rows, attributes, **more) as plan:
        draw_counts(engine, workspace, plan, schedule_of(plan), draws, lambda _: None)
        workspace.drop(workspace.table("places"))
        assert failed([audit_charges(schedule_of(plan), draws.requests)]) == []
    return draws.requests


@pytest.mark.parametrize("algorithm", [{}, {"variant": "published"}, {"score": "information-gain"}])
def test_one_row_changes_no_more_than_the_sensitivities(
    engines: tuple[Engine, Engine], algorithm: dict[str, Any]
) -> None:
    for seed, engine in enumerate(engines):
        rows = rows_of(30, seed)
        omitted = random.Random(seed).randrange(len(rows))
        whole, fewer = (
            requests_of(engine, COLUMNS, part, ATTRIBUTES, **DIFFGEN | algorithm)
            for part in (rows, rows[:omitted] + rows[omitted + 1 :])
        )
        assert failed(audit_changes(whole, {"one": fewer})) == []


def test_one_person_changes_no_more_than_its_rows(engines: tuple[Engine, Engine]) -> None:
    columns, attributes = {"person": "INTEGER", **COLUMNS}, {"person": "identifier", **ATTRIBUTES}
    rows = [(None if number % 7 == 0 else number % 6, *row) for number, row in enumerate(rows_of(60, 2))]
    without = [row for row in rows if row[0] != 3]
    for engine in engines:
        whole, fewer = (
            requests_of(engine, columns, part, attributes, unit=PERSONS, **DIFFGEN) for part in (rows, without)
        )
        assert failed(audit_changes(whole, {"one": fewer})) == []


def test_changes_are_measured_in_sensitivities() -> None:
    def noise(*numbers: int, **more: Any) -> Request:
        return Request(NOISE, numbers, Fraction(1), 2, **more)

    def scores(*numbers: int) -> Request:
        return Request("noisy max", numbers, Fraction(1), 4, monotone=True)

    assert change(noise(3, 0, 1), noise(1, 0, 2)) == Fraction(3, 2)
    assert change(noise(3, 1), noise(3, 1, 0)) is None
    assert change(noise(3, 1, is_complete=False), noise(3, is_complete=False)) == Fraction(1, 2)
    assert change(scores(5, 9), scores(5, 3)) == Fraction(3, 2)
    assert change(scores(5, 3), scores(5, 9)) is None  # a score fell by a row more
    assert change(noise(1), replace(noise(1), epsilon=Fraction(2))) is None


def test_probabilities_are_bounded_as_clopper_and_pearson_do() -> None:
    assert least_probability(10, 10, 0.025) == pytest.approx(0.025**0.1)
    assert least_probability(0, 10, 0.025) == 0
    assert least_probability(5, 10, 0.025) == pytest.approx(0.1870860)  # of the table of the binomial distribution


def test_lower_bounds_hold_and_are_near() -> None:
    """Of geometric noise of epsilon 1, whose every event has probabilities that are known."""
    draw = np.random.default_rng(3)

    def noisy(value: int) -> Any:
        return (value + draw.geometric(1 - math.exp(-1), 8_000) - draw.geometric(1 - math.exp(-1), 8_000))[:, None]

    assert 0.7 < lower_bound(noisy(1), noisy(0), 1e-6) <= 1
    assert lower_bound(noisy(0), noisy(0), 1e-6) <= 0.1
    assert lower_bound(noisy(0), noisy(40), 1e-6) > 5


def test_a_person_in_both_parts_of_a_range_pays_for_the_cut_of_each(database: Database) -> None:
    """By information gain: the gain of each part may change by all that it can."""
    columns = {"person": "INTEGER", "age": "INTEGER", "pay": "VARCHAR"}
    attributes = {
        "person": "identifier",
        "age": {"role": "quasi-identifier", "domain": {"from": 0, "below": 64}},
        "pay": ATTRIBUTES["pay"],
    }
    rows = [(number % 20, number * 7 % 64, CLASSES[number % 3 % 2]) for number in range(40)]
    known = Known(lambda scores: len(scores) // 2)
    account = Ample()
    policy = private_policy(
        database,
        database.create(columns, rows),
        attributes,
        unit={"column": "person", "rows": 2},
        target="pay",
        specializations=3,
        score="information-gain",
        variant="published",
    )
    draw(policy, known, account)
    ((*choices, _),) = account.charged
    assert len(known.asked) == len(choices) == 1 + 3 * 3
    assert sum(one.epsilon for one in choices) == Fraction(1, 2)


def test_no_mechanism_costs_more_than_its_share_by_the_account_of_the_library() -> None:
    """Scales are doubles: one that is rounded down would cost too much."""
    mechanism = OpenDP()
    for parts in (1, 3, 7, 11, 199):
        share = Fraction(1, 3 * parts)
        assert Fraction(mechanism._laplace(share, 3)[0].map(3)) <= share
        assert all(Fraction(mechanism._noisy_max(share, 3, monotone)[0].map(3)) <= share for monotone in (True, False))


ALGORITHMS: dict[str, dict[str, Any]] = {
    "diffgen": DIFFGEN,
    "published": {**DIFFGEN, "variant": "published", "score": "information-gain", "as": "rows"},
    "contingency": {"name": "contingency", "target": "pay"},
    "threshold": {"name": "contingency", "target": "pay", "threshold": "auto"},
    "marginals": {"name": "marginals", "target": "pay", "marginals": [["age", "job"], ["job", "pay"]]},
    "mst": {"name": "mst", "target": "pay"},
}


def generated(plan: PrivatePlan, units: int = 2) -> GeneratedTable:
    """A table with some neighbours, those with the most and the undeclared values among them."""
    table = generate_table(plan, EMBEDDED)
    return replace(table, units=[one for one in table.units if one[0] in _FIRST[:units]])


_FIRST = ("more than the domains", "usual values", "undeclared values", "less than the domains", "NULL")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_audit_fails(memory: Engine, name: str) -> None:
    unit = PERSONS if name in ("diffgen", "threshold") else "row"
    columns, attributes = {"person": "INTEGER", **COLUMNS}, {"person": "identifier", **ATTRIBUTES}
    with planned(memory, columns, [], attributes, unit=unit, **ALGORITHMS[name]) as plan:
        schedule, table = schedule_of(plan), generated(plan)
        findings = audit_schedule(plan, schedule)
        if name == "diffgen":
            findings += audit_account(plan, schedule, table, OPTIONS)
        findings += audit_neighbours(plan, schedule, table, OPTIONS)
        findings += audit_samples(plan, schedule, OpenDP(), 1_000)
    assert failed(findings) == []


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(memory: Engine, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    mutate, audit = MUTANTS[name]
    algorithm = "threshold" if audit == "threshold" else "diffgen" if audit == "neighbours" else "contingency"
    with planned(memory, COLUMNS, [], ATTRIBUTES, **ALGORITHMS[algorithm]) as plan:
        mutate(monkeypatch)
        schedule, table = schedule_of(plan), generated(plan, 1)
        found = {
            "schedule": lambda: audit_schedule(plan, schedule),
            "account": lambda: audit_account(plan, schedule, table, OPTIONS),
            "neighbours": lambda: audit_neighbours(plan, schedule, table, OPTIONS),
        }.get(audit, lambda: audit_samples(plan, schedule, OpenDP(), 8_000))()
    assert failed(found) != []


JOBS = {"mapping": {f"j{number:02}": ["any"] for number in range(40)}, "unknown": "j00"}
MANY_CELLS = {  # 4 * 10^9: those beyond 2^31 have the last jobs
    "job": {"role": "quasi-identifier", "hierarchy": JOBS},
    "number": {"role": "quasi-identifier", "domain": {"from": 0, "below": 100_000}},
    "branch": {"role": "quasi-identifier", "domain": {"from": 0, "below": 1000}},
}


def test_rows_in_the_last_cells_are_audited(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"job": "VARCHAR NOT NULL", "number": "INTEGER NOT NULL", "branch": "INTEGER NOT NULL"}
    with planned(memory, columns, [], MANY_CELLS, threshold="auto") as plan:
        schedule, table = schedule_of(plan), generate_table(plan, EMBEDDED)
        table = replace(table, units=[one for one in table.units if one[0] == "the last cell"])
        assert table.rows[table.units[0][1][0]] == ("j39", "99999", "999")
        assert failed(audit_neighbours(plan, schedule, table, OPTIONS)) == []
        cells_of_32_bits(monkeypatch)
        assert "OutOfRange" in failed(audit_neighbours(plan, schedule, table, OPTIONS))[0]


def test_generated_tables_have_what_lies_beyond_the_domains(memory: Engine) -> None:
    columns = {"n": "INTEGER NOT NULL", "x": "DECIMAL(9,2)", "day": "DATE", "pay": "VARCHAR"}
    attributes = {
        "n": {"role": "quasi-identifier", "domain": {"from": 0, "below": 30, "step": 10}},
        "x": {"role": "quasi-identifier", "domain": {"from": 0.5, "below": 2, "step": 0.25}},
        "day": {"role": "quasi-identifier", "values": ["2024-02-29", "never"]},
        "pay": ATTRIBUTES["pay"],
    }
    with planned(memory, columns, [], attributes, target="pay") as plan:
        table = generate_table(plan, EMBEDDED)
    assert [(one.name, one.type, one.nullable) for one in table.columns] == [
        ("n", "BIGINT", False),
        ("x", "DECIMAL(38,2)", True),
        ("day", "DATE", True),
        ("pay", "VARCHAR", True),
    ]
    kinds = {what: table.rows[places[0]] for what, places in table.units}
    assert kinds["usual values"] == ("0", "0.50", "2024-02-29", "low")
    assert kinds["the last cell"] == ("20", None, None, "high")
    assert kinds["less than the domains"] == ("-100", "-2.00", "2024-02-29", "low")
    assert kinds["more than the domains"] == ("130", "4.50", "2024-02-29", "low")
    assert kinds["undeclared values"] == ("0", "0.50", "1876-05-04", "low")
    assert kinds["NULL"] == ("0", None, None, "low")
    assert kinds["another class"] == ("0", "0.50", "2024-02-29", "an undeclared value")
    assert {len(rows) for _, rows in table.neighbours()} == {len(table.rows) - 1}


def test_what_is_not_private_is_not_audited(database: Database) -> None:
    table = database.create(COLUMNS, [])
    with pytest.raises(PolicyError, match="sqlanon verify"):
        audit_mechanisms(database.policy(table, dict.fromkeys(COLUMNS, "quasi-identifier")))


@pytest.mark.either_engine
@pytest.mark.parametrize(
    "labels",
    [
        ("[30-39]", "[*-29]", "[40-49]", "[50-*]"),
        ("[*-29]", "[40-49]", "[50-*]"),
        ("[*-29]", "[40-49]", "[30-39]", "[50-*]"),
        ("[*-29]", "[30-39]", "[30-39]", "[40-49]", "[50-*]"),
    ],
)
def test_labels_that_do_not_cover_the_domain_are_found(
    database: Database, monkeypatch: pytest.MonkeyPatch, labels: tuple[str, ...]
) -> None:
    """Exchanged, left out, out of their order, twice: whatever the cells under them say."""
    wrong = {"age": (*labels, "NULL")}
    monkeypatch.setattr(NoisyCounts, "labels", property(lambda _: {**wrong, "pay": CLASSES}))
    columns, attributes = ({name: one[name] for name in ("age", "pay")} for one in (COLUMNS, ATTRIBUTES))
    rows = [(row[0], row[2]) for row in rows_of(20, 1)]
    policy = database.policy(
        database.create(columns, rows),
        attributes,
        privacy=[{"model": "differential-privacy", "epsilon": 1}],
        algorithm={"name": "contingency", "target": "pay"},
    )
    with pytest.raises(VerificationError, match="labels_public"):
        draw(policy)


@pytest.mark.either_engine
@pytest.mark.parametrize("exchanged", ["age", "pay"])
def test_counts_under_exchanged_labels_are_found(
    database: Database, monkeypatch: pytest.MonkeyPatch, exchanged: str
) -> None:
    """The staged table has all cells once, in whatever order: the counts are those of others."""
    staging = counts.load_labels

    def exchange(engine: Engine, table: Relation, labels: Sequence[Sequence[str]]) -> None:
        place = ["age", "pay"].index(exchanged)
        staging(engine, table, [one[::-1] if number == place else one for number, one in enumerate(labels)])

    monkeypatch.setattr(counts, "load_labels", exchange)
    columns, attributes = ({name: one[name] for name in ("age", "pay")} for one in (COLUMNS, ATTRIBUTES))
    policy = database.policy(
        database.create(columns, [(25, "low"), (35, "high"), (35, "high")]),
        attributes,
        privacy=[{"model": "differential-privacy", "epsilon": 1}],
        algorithm={"name": "contingency", "target": "pay"},
    )
    with pytest.raises(VerificationError, match="counts_drawn"):
        draw(policy)


def test_the_account_is_charged_before_the_source_is_read(database: Database) -> None:
    class Refusing:
        def spend(self, *_: Any) -> Any:
            raise VerificationError("exhausted")

    table, known = database.create(COLUMNS, rows_of(20, 1)), Known()
    with pytest.raises(VerificationError, match="exhausted"):
        draw(private_policy(database, table, ATTRIBUTES, target="pay"), known, Refusing())
    assert not known.asked
    assert not known.counted
