"""Classes of small tables as the statements of privacy models read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.models import (
    Groups,
    PrivacyModel,
)
from sqlanon.sql import Relation, Statement
from tests.random_cases import many

MANY = settings(max_examples=many(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

HEIGHT = 3
Classes = dict[int, list[int | None]]
Measures = dict[int, tuple[float, bool]]

values = st.one_of(st.none(), st.integers(-3, 12))
thresholds = st.sampled_from([0.1, 0.3, 0.5, 0.7, 1 / 3, 1.0, 1.1, 2.2, 3.0]) | st.floats(1e-9, 1e9)
partitions = st.lists(st.lists(values, min_size=1, max_size=12), min_size=1, max_size=5).map(
    lambda parts: dict(enumerate(parts))
)


def ancestors(value: int | None) -> tuple[int, ...]:
    """A hierarchy over whole numbers: pairs, then groups of six, then the root; NULL alone under the root."""
    return (-9, -9, 0) if value is None else (value // 2, value // 6, 0)


def table_of(classes: Classes) -> list[int | None]:
    return [value for part in classes.values() for value in part]


def order_of(classes: Classes) -> list[int | None]:
    return sorted(set(table_of(classes)), key=lambda value: (value is not None, value or 0))


def codes_of(values: Iterable[int | None]) -> dict[int | None, int]:
    """Codes of values, in their order; None alone has code 0."""
    known = sorted(value for value in set(values) if value is not None)
    return {None: 0} | {value: code for code, value in enumerate(known, start=1)}


def load(engine: Engine, classes: Classes, scale: float = 1.0) -> Groups:
    """The class statistics of `classes` in tables of the engine; the numeric values are multiplied by `scale`."""
    for table, columns in {
        "test_classes": "class BIGINT, n BIGINT",
        "test_avs": "class BIGINT, s BIGINT, n BIGINT",
        "test_domain": "s BIGINT, position BIGINT, value FLOAT8, n BIGINT, g1 BIGINT, g2 BIGINT, g3 BIGINT,"
        " text VARCHAR(9)",
    }.items():
        engine.execute(Statement("test", f"DROP TABLE IF EXISTS {table}"))
        engine.execute(Statement("test", f"CREATE TABLE {table} ({columns})"))
    codes = codes_of(table_of(classes))
    counts = Counter(table_of(classes))
    insert(engine, "test_classes", ["class", "n"], [(c, len(part)) for c, part in classes.items()])
    avs = [(c, codes[value], n) for c, part in classes.items() for value, n in Counter(part).items()]
    insert(engine, "test_avs", ["class", "s", "n"], avs)
    domain = [
        (
            code,
            order_of(classes).index(value),
            None if value is None else value * scale,
            counts[value],
            *ancestors(value),
            None if value is None else str(value),
        )
        for value, code in codes.items()
        if value in counts
    ]
    insert(engine, "test_domain", ["s", "position", "value", "n", "g1", "g2", "g3", "text"], domain)
    names = (Markup("test_classes"), Markup("(SELECT * FROM test_avs)"), Markup("test_domain"))
    return Groups(*names, rows=len(table_of(classes)), height=HEIGHT)


def insert(engine: Engine, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    found = engine.resolve(Relation(table))
    assert found is not None
    engine.load(found, columns, rows)


def measure(engine: Engine, model: PrivacyModel, groups: Groups) -> Measures:
    """The model's statement, used as the search uses it: as a subquery; and no measure contradicts its verdict."""
    statement = model.measure(engine.render, groups)
    rows = engine.fetch(Statement("test", f"SELECT m.class, m.measure, m.violates FROM ({statement}) AS m"))
    assert len(rows) == len({row[0] for row in rows})
    assert all(model.is_met_by(value, groups.rows) in (None, not violates) for _, value, violates in rows)
    return {class_: (value, violates) for class_, value, violates in rows}
