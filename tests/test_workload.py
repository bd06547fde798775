"""How well a release predicts a target: the measures against their definitions, on both engines."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlanon.engines.base import Engine
from sqlanon.errors import ConflictError
from sqlanon.sql import Relation
from sqlanon.workload.measures import Measures, View, look_at, measure, one_class
from sqlanon.workload.views import table_view
from tests.oracle.brute_force import Row, entropy, variance
from tests.test_verify import FEW, create

COLUMNS = {"q": "BIGINT", "p": "VARCHAR(9)", "s": "VARCHAR(9)", "i": "BIGINT", "f": "FLOAT8", "d": "DECIMAL(9,2)"}
rows_of_a_table = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, "", "a", "A"]),
        st.sampled_from([None, "flu", "Flu", "cold"]),
        st.sampled_from([None, -(2**62), 5, 2**62]),
        st.sampled_from([None, -1.5, 0.0, -0.0, 0.1, 1e6, 1e200, math.inf, math.nan]),
        st.sampled_from([None, "1.50", "1.5", "-7.25"]),
    ),
    min_size=1,
    max_size=30,
)


def expected(rows: Sequence[Row], classes: Sequence[Sequence[Row]], place: int) -> tuple[float, float | None]:
    """Conditional entropy in bits, and the root of the mean squared error, by definition."""
    bits = math.fsum(len(part) * entropy([plain(row[place]) for row in part]) for part in classes)
    squares, known = Fraction(0), sum(number(row[place]) is not None for row in rows)
    for part in classes:
        numbers = [n for row in part if (n := number(row[place])) is not None]
        squares += variance(numbers) * len(numbers)
    error = math.sqrt(squares / known) if known and place > 2 else None
    return bits / len(rows) / math.log(2), error


def plain(value: Any) -> Any:
    return "nan" if value != value else float(value) if isinstance(value, str) and "." in value else value


def number(value: Any) -> float | None:
    found = None if value is None or (isinstance(value, str) and "." not in value) else float(value)
    return found if found is not None and abs(found) <= 1e150 else None


def classes_of(rows: Sequence[Row]) -> dict[Row, list[Row]]:
    found: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[:2]].append(row)
    return found


def is_like(found: Measures, wanted: tuple[float, float | None]) -> bool:
    bits, error = wanted
    same = pytest.approx(error, rel=1e-6, abs=1e-6 * 2**-10) if error is not None else None
    return found.conditional_entropy == pytest.approx(bits, abs=1e-9) and found.rmse == same


@FEW
@given(rows=rows_of_a_table, data=st.data())
def test_measures_are_those_of_their_definitions(engine: Engine, rows: list[Row], data: st.DataObject) -> None:
    held = classes_of(rows)
    gone = data.draw(st.sets(st.sampled_from(sorted(held, key=str))))
    suppressed = [row for key in gone for row in held[key]]
    source = create(engine, COLUMNS, rows)
    release = create(engine, COLUMNS, [row for row in rows if row not in suppressed], "released")
    for place, target in enumerate(["s", "i", "f", "d"], start=2):
        view = table_view(engine, source, ["q", "p"], target)
        whole = look_at(engine, view, len(rows), lacking=bool(suppressed))
        assert is_like(measure(engine, view, whole), expected(rows, list(held.values()), place)), target
        assert is_like(measure(engine, one_class(view), whole), expected(rows, [rows], place)), target
        kept = [part for key, part in held.items() if key not in gone]
        found = measure(engine, table_view(engine, release, ["q", "p"], target), whole)
        assert is_like(found, expected(rows, [*kept, suppressed] if suppressed else kept, place)), target
