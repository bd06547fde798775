"""Verification of any table against brute force, on both engines."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.measures.metrics import ClassStatistics, SizeBucket
from sqlanon.models import (
    DistinctLDiversity,
    EntropyLDiversity,
    Groups,
    KAnonymity,
    PrivacyModel,
    RecursiveLDiversity,
    VarianceDiversity,
)
from sqlanon.models.closeness import DISTANCES
from sqlanon.sql import Identifier, Relation, Renderer, Statement
from sqlanon.verification.verify import verify_table
from tests.oracle import brute_force
from tests.oracle.brute_force import Row
from tests.random_cases import many

FEW = settings(max_examples=many(7), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

COLUMNS = {"age": "BIGINT", "zip": "VARCHAR(9)", "disease": "VARCHAR(9)", "wage": "FLOAT8"}
QUASI_IDENTIFIERS = ("age", "zip")

rows_of_a_table = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, "", "a", "A"]),
        st.sampled_from([None, "flu", "Flu", "cold"]),
        st.sampled_from([None, -1.5, 0.0, 2.0, 1e6]),
    ),
    max_size=30,
)


def create(engine: Engine, columns: dict[str, str], rows: Sequence[Row], name: str = "people") -> Relation:
    """A fresh table of the engine with these rows."""
    table = Relation(name)
    definition = ", ".join(f"{Identifier(column)} {type_}" for column, type_ in columns.items())
    engine.execute(Statement("test", f"DROP TABLE IF EXISTS {table}"))
    engine.execute(Statement("test", f"CREATE TABLE {table} ({definition})"))
    found = engine.resolve(table)
    assert found is not None
    engine.load(found, list(columns), rows)
    return found


def diseases(engine: Engine) -> HierarchyTable:
    """A dimension table: two kinds of flu in one group, colds in another, then the root."""
    columns = {"value": "VARCHAR(9)", "g1": "BIGINT", "g2": "BIGINT"}
    table = create(engine, columns, [("flu", 1, 0), ("Flu", 1, 0), ("cold", 2, 0)], "diseases")
    return HierarchyTable(table, table, height=2, shifts=(0, 1, 2), leaves=3, domain=3)


def worst_of(model: PrivacyModel, place: int, rows: Sequence[Row]) -> float | None:
    """The worst measure over the classes by its definition; None where there is none, or it is infinite."""
    parts = [[row[place] for row in part] for part in brute_force.classes(rows, (0, 1)).values()]
    table = [row[place] for row in rows]
    order = sorted(set(table), key=lambda value: (value is not None, value or 0 if place == 3 else value or ""))
    groups = {"flu": (1, 0), "Flu": (1, 0), "cold": (2, 0), None: (3, 0)}
    definitions: dict[str, Callable[[list[Any]], Any]] = {
        "k-anonymity": len,
        "distinct-l-diversity": brute_force.distinct,
        "entropy-l-diversity": lambda part: math.exp(brute_force.entropy(part)),
        "recursive-l-diversity": lambda part: brute_force.recursive_ratio(part, 2),
        "variance-diversity": brute_force.variance,
        "equal": lambda part: brute_force.equal_distance(part, table),
        "ordered": lambda part: brute_force.ordered_distance(part, table, order),
        "hierarchical": lambda part: brute_force.hierarchical_distance(part, table, groups),
        "kl": lambda part: brute_force.kl_divergence(part, table),
    }
    define = definitions[model.parameters.get("distance", model.name)]
    measures = [float(define(part)) for part in parts]
    if not measures:
        return None
    worst = model.worst_of((min(measures), max(measures)))
    return worst if math.isfinite(worst) else None


MODELS: tuple[PrivacyModel, ...] = (
    KAnonymity(2),
    DistinctLDiversity("disease", 2),
    EntropyLDiversity("disease", 1.5),
    RecursiveLDiversity("disease", 2.0, 2),
    VarianceDiversity("wage", 1.0),
    *(distance("disease", 0.3) for distance in DISTANCES.values()),
    DISTANCES["ordered"]("wage", 0.3),
)


@FEW
@given(rows=rows_of_a_table)
def test_every_model_as_defined(engine: Engine, rows: list[Row]) -> None:
    table = create(engine, COLUMNS, rows)
    found = verify_table(engine, table, QUASI_IDENTIFIERS, MODELS, hierarchies={"disease": diseases(engine)})
    for model, result in zip(MODELS, found.models, strict=True):
        expected = worst_of(model, 3 if model.attribute == "wage" else 2, rows)
        assert (result.worst is None) == (expected is None), model
        assert result.worst == pytest.approx(expected, rel=1e-6, abs=1e-9) if expected is not None else True, model
        assert result.satisfied == (result.violations == 0) == (result.violating_rows == 0)


@FEW
@given(rows=rows_of_a_table)
def test_classes_and_violations(engine: Engine, rows: list[Row]) -> None:
    parts = [len(part) for part in brute_force.classes(rows, (0, 1)).values()]
    found = verify_table(engine, create(engine, COLUMNS, rows), QUASI_IDENTIFIERS, [KAnonymity(3)])
    statistics, (result,) = found.statistics, found.models
    assert (statistics.rows, statistics.suppressed, statistics.classes) == (len(rows), 0, len(parts))
    assert (statistics.min_class_size, statistics.max_class_size) == (min(parts, default=0), max(parts, default=0))
    assert statistics.discernibility() == sum(n * n for n in parts)
    assert result.violations == sum(n < 3 for n in parts)
    assert result.violating_rows == sum(n for n in parts if n < 3)
    assert statistics == verify_table(engine, create(engine, COLUMNS, rows), QUASI_IDENTIFIERS, ()).statistics


def test_suppressed_rows_are_a_class_and_part_of_the_distribution(engine: Engine) -> None:
    columns = {"age": "VARCHAR(9)", "wage_min": "BIGINT", "disease": "VARCHAR(9)"}
    rows = [("[1-5]", 1, "a"), ("[1-5]", 1, "b"), ("*", None, "a"), ("*", None, "c"), ("*", 3, "b"), ("*", 3, "b")]
    table = create(engine, columns, rows)
    models = [KAnonymity(2), DISTANCES["equal"]("disease", 0.5), DistinctLDiversity("disease", 1)]
    found = verify_table(engine, table, ["age", "wage_min"], models, suppressed_label="*", exempt=True)
    assert (found.statistics.rows, found.statistics.suppressed, found.statistics.classes) == (6, 2, 3)
    assert found.statistics.sizes == ((2, 3),)
    assert found.statistics.discernibility() == 4 + 4 + 2 * 6
    assert [result.worst for result in found.models] == [2.0, 0.5, 1.0]
    strict = verify_table(engine, table, ["age", "wage_min"], [KAnonymity(3)], suppressed_label="*")
    assert [(result.violations, result.violating_rows) for result in strict.models] == [(3, 6)]
    assert strict.violated_by_stars == ("k-anonymity",)
    assert not strict.fails_by_stars_alone
    assert verify_table(engine, table, ["age", "wage_min"], []).statistics.classes == 3
    everything = verify_table(engine, table, ["age"], [KAnonymity(9)], suppressed_label="[1-5]")
    assert everything.statistics.suppressed == 2


def test_a_table_without_classes_satisfies_and_says_so(engine: Engine) -> None:
    empty = verify_table(engine, create(engine, COLUMNS, []), QUASI_IDENTIFIERS, MODELS[:5])
    assert empty.satisfied
    assert empty.statistics.classes == 0
    assert [result.worst for result in empty.models] == [None] * 5
    assert empty.note is not None
    assert "empty" in empty.note
    starred = create(engine, {"age": "VARCHAR(9)"}, [("*",)])
    found = verify_table(engine, starred, ["age"], [KAnonymity(2)], suppressed_label="*", exempt=True)
    assert found.satisfied
    assert found.note == "UNPROTECTED: 1 suppressed row, shown as one class, which violates k-anonymity."
    judged = verify_table(engine, starred, ["age"], [KAnonymity(2)], suppressed_label="*")
    assert judged.fails_by_stars_alone
    assert judged.note is None


def test_without_quasi_identifiers_the_table_is_one_class(engine: Engine) -> None:
    table = create(engine, COLUMNS, [(1, "a", "flu", 1.0), (2, "b", "cold", None)])
    found = verify_table(engine, table, [], [KAnonymity(2), DistinctLDiversity("disease", 2)])
    assert found.satisfied
    assert found.statistics.sizes == ((2, 1),)
    assert verify_table(engine, table, [], [KAnonymity(3)]).models[0].violations == 1
    assert verify_table(engine, create(engine, COLUMNS, []), [], [KAnonymity(3)]).statistics.classes == 0


def test_names_that_need_quoting(engine: Engine) -> None:
    columns = {'Odd "name" %': "BIGINT", "select": "BIGINT", "{{ é }} :x": "VARCHAR(9)", "v": "BIGINT", "q0": "BIGINT"}
    table = create(engine, columns, [(1, 1, "a", 1, 1), (1, 1, "b", 1, 1)], "Grouped %s.x")
    quasi_identifiers = [name for name in columns if not name.startswith("{{")]
    found = verify_table(engine, table, quasi_identifiers, [DistinctLDiversity("{{ é }} :x", 2), KAnonymity(2)])
    assert found.satisfied
    assert found.statistics.classes == 1


def test_special_numbers_are_values(engine: Engine) -> None:
    """NaN equals NaN; as sensitive values -0.0 equals 0.0, and all have a place in the order."""
    rows = [(math.nan, 0.0), (math.nan, -0.0), (0.0, math.nan), (0.0, math.inf)]
    table = create(engine, {"x": "FLOAT8", "s": "FLOAT8"}, rows)
    models = [DISTANCES["ordered"]("s", 1.0), VarianceDiversity("s", 0.0), DistinctLDiversity("s", 1)]
    found = verify_table(engine, table, ["x"], models)
    assert found.statistics.sizes == ((2, 2),)
    assert [result.worst for result in found.models] == [0.375, 0.0, 1.0]


def test_one_statement_for_each_sensitive_attribute(engine: Engine) -> None:
    table = create(engine, COLUMNS, [(1, "a", "flu", 1.0)])
    names: list[str] = []
    engine.listener = lambda statement, _seconds, _rows: names.append(statement.name)
    verify_table(engine, table, QUASI_IDENTIFIERS, MODELS[:5])
    assert names.count("verification/measure_avs") == 2
    assert names.count("verification/measure_classes") == 0
    names.clear()
    verify_table(engine, table, QUASI_IDENTIFIERS, [KAnonymity(1), KAnonymity(2)])
    assert names.count("verification/measure_classes") == 1


def test_no_statement_loops_over_pairs_of_rows(postgres_url: str) -> None:
    """Sorting is made dear for them: a join of classes that is not hashed would be a loop, 43 s for 50,000 rows."""
    with contextlib.closing(connect(postgres_url)) as engine:
        table = create(engine, COLUMNS, [(n, str(n), str(n % 7), float(n % 5)) for n in range(600)])
        engine.analyze(table)
        seen: list[Statement] = []
        engine.listener = lambda statement, _seconds, _rows: seen.append(statement)
        verify_table(engine, table, QUASI_IDENTIFIERS, MODELS[:5])
        engine.listener = None
        measuring = [statement for statement in seen if statement.name == "verification/measure_avs"]
        assert len(measuring) == 2
        with engine.grouping_by_hash():
            plans = [engine.fetch(Statement("test", f"EXPLAIN {statement}")) for statement in measuring]
    assert [line for plan in plans for (line,) in plan if "Nested Loop" in line] == []


@pytest.mark.parametrize(
    ("select", "k"),
    [
        ("x.measure, x.measure < 2 AS violates FROM {own} AS x", 3),
        ("x.measure, x.measure < 3 AS violates FROM {own} AS x", 2),
        ("x.measure, CAST(NULL AS BOOLEAN) AS violates FROM {own} AS x", 2),
        ("x.measure, x.violates FROM {own} AS x WHERE x.measure > 2", 3),
        ("x.measure, x.violates FROM {own} AS x WHERE x.measure > 9", 2),
        ("x.measure, x.violates FROM {own} AS x CROSS JOIN generate_series(1, 2) AS g", 2),
        ("CAST(NULL AS FLOAT8) AS measure, x.violates FROM {own} AS x", 2),
    ],
)
def test_a_model_that_contradicts_itself_verifies_nothing(
    engine: Engine, select: str, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its verdicts are not those of its measures, or are missing, as classes are."""
    table = create(engine, COLUMNS, [(n, "a", "flu", 1.0) for n in (1, 1, 2, 2, 2)])
    measure = KAnonymity.measure

    def spoilt(self: KAnonymity, render: Renderer, groups: Groups) -> Statement:
        return Statement("test", f"SELECT x.class, {select.format(own=f'({measure(self, render, groups)})')}")

    assert verify_table(engine, table, ["age"], [KAnonymity(k)]).satisfied == (k == 2)
    monkeypatch.setattr(KAnonymity, "measure", spoilt)
    with pytest.raises(VerificationError, match="k-anonymity contradicts itself"):
        verify_table(engine, table, ["age"], [KAnonymity(k)])


def test_what_does_not_exist_is_refused(engine: Engine) -> None:
    table = create(engine, COLUMNS, [])
    with pytest.raises(PolicyError, match="no table"):
        verify_table(engine, Relation("absent"), [], [KAnonymity(1)])
    with pytest.raises(PolicyError, match="no column 'absent'"):
        verify_table(engine, table, ["absent"], [KAnonymity(1)])
    with pytest.raises(PolicyError, match="no column 'absent'"):
        verify_table(engine, table, ["age"], [DistinctLDiversity("absent", 1)])
    with pytest.raises(PolicyError, match="needs a hierarchy of 'disease'"):
        verify_table(engine, table, ["age"], [DISTANCES["hierarchical"]("disease", 0.1)])


def test_statistics() -> None:
    statistics = ClassStatistics(rows=30, suppressed=4, sizes=((2, 3), (4, 1), (5, 2), (10, 1)))
    assert (statistics.classes, statistics.mean_class_size) == (7, 30 / 7)
    assert (statistics.prosecutor_max, statistics.prosecutor_mean, statistics.marketer) == (0.5, 7 / 30, 7 / 30)
    assert statistics.c_avg(2) == pytest.approx(30 / 14)
    assert statistics.discernibility(omitted=2) == 12 + 50 + 100 + 6 * 32
    assert statistics.buckets() == (SizeBucket(2, 4, 4, 10), SizeBucket(5, 9, 2, 10), SizeBucket(10, 19, 1, 10))
    assert sum(bucket.rows for bucket in statistics.buckets()) == statistics.rows
    nothing = ClassStatistics(rows=0, suppressed=0, sizes=())
    assert (nothing.buckets(), nothing.c_avg(2), nothing.prosecutor_max, nothing.marketer) == ((), 0.0, 0.0, 0.0)
