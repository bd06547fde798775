"""Minimal sample uniques and their scores: on both engines as by brute force, and as published."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import pytest

from sqlanon.engines.base import Engine
from sqlanon.inquiries.risk.coded_columns import code_columns
from sqlanon.inquiries.risk.suda import FRACTION, measure_suda
from sqlanon.results.risk import SudaRisk
from sqlanon.sql import Statement
from sqlanon.work.workspace import TemporaryWorkspace
from tests.inquiries.risk.tables import Row, make_table


def measured(
    engine: Engine, columns: dict[str, str], rows: Sequence[Row], most: int, fraction: float = FRACTION
) -> tuple[SudaRisk, Counter[tuple[float, float]]]:
    """The result, and the SUDA and DIS-SUDA scores of the rows that have one."""
    table = make_table(engine, columns, rows)
    with engine.transaction():
        coded = code_columns(engine, TemporaryWorkspace(engine), table, engine.columns(table))
        risk, scores = measure_suda(engine, TemporaryWorkspace(engine), coded, most, fraction)
    dis = engine.traits.renderer().written(scores.dis)
    found = engine.fetch(Statement("test", f"SELECT s.suda, {dis} FROM {scores.table} AS s"))
    return risk, Counter((suda, round(score, 9)) for suda, score in found)


def minimal_uniques(rows: Sequence[Row], most: int) -> list[list[tuple[int, ...]]]:
    """The subsets of columns by which each row is alone, and by none within."""
    counts = {
        subset: Counter(tuple(row[i] for i in subset) for row in rows)
        for size in range(1, most + 1)
        for subset in combinations(range(len(rows[0])), size)
    }
    unique = [{s for s, n in counts.items() if n[tuple(row[i] for i in s)] == 1} for row in rows]
    return [[s for s in of_row if not any(set(t) < set(s) for t in of_row)] for of_row in unique]


def dis_scores(scores: Sequence[float], columns: int, pairs: int, fraction: float) -> list[float]:
    """The DIS-SUDA scores, of rows with `pairs` that are one of two."""
    exponent = 1 + (8 - columns) / 20
    total = sum(score**-exponent for score in scores if score)
    odds = pairs * (1 - fraction) / fraction
    return [1 / (1 + odds / (score**exponent * total)) if score else 0.0 for score in scores]


def suda_scores(uniques: Sequence[Sequence[tuple[int, ...]]], columns: int, most: int) -> list[float]:
    return [sum(math.prod(columns - i for i in range(len(s), most)) for s in of_row) for of_row in uniques]


@pytest.mark.parametrize("seed", range(4))
def test_uniques_are_those_by_brute_force(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    columns, most = chance.choice([(4, 3), (5, 3), (6, 2), (4, 4), (7, 3)])
    domains = [[None, *(f"v{n}" for n in range(chance.choice([1, 3, 6, 12])))] for _ in range(columns)]
    rows: list[Row] = [tuple(map(chance.choice, domains)) for _ in range(60)]
    risk, scores = measured(engine, {f"c{n}": "VARCHAR(4)" for n in range(columns)}, rows, most, 0.1)
    uniques = minimal_uniques(rows, most)
    sizes = Counter(len(s) for of_row in uniques for s in of_row)
    assert risk.minimal_uniques_by_size == {size: sizes[size] for size in range(1, most + 1)}
    suda = suda_scores(uniques, columns, most)
    groups = Counter(rows)
    dis = dis_scores(suda, columns, sum(2 for n in groups.values() if n == 2), 0.1)
    assert scores == Counter((s, round(d, 9)) for s, d in zip(suda, dis, strict=True) if s)
    assert (risk.rows, risk.score_max) == (sum(1 for s in suda if s), max(suda))
    assert risk.dis_mean == pytest.approx(sum(dis) / len(rows))
    assert risk.dis_max == pytest.approx(max(dis))
    for number in range(columns):
        share = sum(suda_scores([[s for s in u if number in s] for u in uniques], columns, most)) / sum(suda)
        assert risk.contribution_by_column[f"c{number}"] == pytest.approx(100 * share)


@pytest.mark.parametrize("most", [3, 4])  # the factor that 4 adds is 1
def test_the_example_of_the_handbook_is_reproduced(engine: Engine, most: int) -> None:
    """World Bank and IHSN, "Statistical disclosure control: a practice guide", table 4.5."""
    columns = dict.fromkeys(("residence", "gender", "education", "labor"), "VARCHAR(30)")
    rows: list[Row] = [
        ("Urban", "Female", "Secondary incomplete", "Employed"),
        ("Urban", "Female", "Secondary incomplete", "Employed"),
        ("Urban", "Female", "Primary incomplete", "Non-LF"),
        ("Urban", "Male", "Secondary complete", "Employed"),
        ("Rural", "Female", "Secondary complete", "Unemployed"),
        ("Urban", "Male", "Secondary complete", "Employed"),
        ("Urban", "Female", "Primary complete", "Non-LF"),
        ("Urban", "Male", "Post-secondary", "Unemployed"),
        ("Urban", "Female", "Secondary incomplete", "Non-LF"),
        ("Urban", "Female", "Secondary incomplete", "Non-LF"),
    ]
    risk, scores = measured(engine, columns, rows, most)
    assert sorted(suda for suda, _ in scores.elements()) == [6, 6, 10, 12]
    assert risk.minimal_uniques_by_size[1] == 4
    # The guide's DIS-SUDA scores are of another version of sdcMicro, in which the uniques of these rows count so much:
    shown = [round(dis, 4) for dis in dis_scores([1.75, 3.25, 1.75, 2.75], 4, 6, 0.01)]
    assert shown == [0.0051, 0.0107, 0.0051, 0.0088]


def test_contributions_are_those_of_sdcmicro(engine: Engine) -> None:
    """The example of sdcMicro's tests."""
    rows: list[Row] = [(2, 0, 0), (1, 3, 6), (1, 0, 0)]
    risk, scores = measured(engine, {"a": "INTEGER", "b": "INTEGER", "c": "INTEGER"}, rows, 3)
    assert risk.contribution_by_column == {"a": 50, "b": 37.5, "c": 37.5}
    assert sorted(suda for suda, _ in scores.elements()) == [2, 2, 4]


def test_the_book_example_is_reproduced(engine: Engine) -> None:
    """Templ, "Statistical disclosure control for microdata", 2017, as sdcMicro's tests give it."""
    rows: list[Row] = [
        ("20s", "male", "50k+", "highschool"),
        ("20s", "male", "50k+", "highschool"),
        ("20s", "male", "50k-", "highschool"),
        ("20s", "male", "50k-", "highschool"),
        ("20s", "female", "50k-", "university"),
        ("20s", "female", "50k-", "highschool"),
        ("20s", "female", "50k-", "middleschool"),
        ("60s", "male", "50k-", "university"),
    ]
    columns = dict.fromkeys(("age", "gender", "income", "education"), "VARCHAR(20)")
    _, scores = measured(engine, columns, rows, 4)
    assert sorted(suda for suda, _ in scores.elements()) == [2, 4, 6, 8]


@pytest.mark.parametrize("rows", [[], [(1, 1.5)], [(None, 2.5)] * 3, [(1, -0.0), (1, 0.0)]])
def test_few_rows(engine: Engine, rows: list[Row]) -> None:
    risk, scores = measured(engine, {"a": "INTEGER", "x": "DOUBLE PRECISION"}, rows, 3)
    uniques = minimal_uniques([(a, str(x)) for a, x in rows], 2) if rows else []
    assert risk.most == 2
    assert sum(risk.minimal_uniques_by_size.values()) == sum(map(len, uniques))
    assert scores.total() == risk.rows == sum(1 for of_row in uniques if of_row)
    assert risk.dis_max == (1.0 if risk.rows else 0.0)


def test_many_columns_take_several_words(engine: Engine) -> None:
    chance = random.Random(7)
    rows: list[Row] = [tuple(chance.randrange(40) for _ in range(18)) for _ in range(50)]
    risk, _ = measured(engine, {f"c{n}": "INTEGER" for n in range(18)}, rows, 2)
    sizes = Counter(len(s) for of_row in minimal_uniques(rows, 2) for s in of_row)
    assert risk.minimal_uniques_by_size == {1: sizes[1], 2: sizes[2]}
