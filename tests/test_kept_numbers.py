"""Kept numbers as they are sorted and told apart: signs of zeros and of NaN, and codes that are packed into keys."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.runs import class_source
from sqlanon.runs.execution import Encoded, RunExecution
from sqlanon.sql import renderer
from sqlanon.staging.rows import _order
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.either_engine

NO_ENGINE: Any = None  # codes are packed without one
PLAIN = [1.5, 0.0, -2.25, 1e300, None, math.inf, 0.1, 7.0]
SIGNED = [1.5, -0.0, 0.0, -2.25, math.nan, None, -0.0, 0.0]


def _released(
    database: Database, floats: list[float | None], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Any], bool]:
    """The released rows as text, in their order, and whether the kept column was coded by its text."""
    rows = [(n % 4, value) for n, value in enumerate(floats * 3)]
    table = database.create({"q": "INTEGER", "x": "DOUBLE PRECISION"}, rows)
    keyed: list[bool] = []
    encode = class_source._encode

    def watched(run: RunExecution, *arguments: Any) -> Encoded:
        encoded = encode(run, *arguments)
        keyed.append(encoded.coded.field("x").coding.keyed)
        return encoded

    monkeypatch.setattr(class_source, "_encode", watched)
    policy = database.policy(table, {"q": "quasi-identifier", "x": "insensitive"})
    anonymize(policy)
    shown = database.sql(f"SELECT q, CAST(x AS VARCHAR) FROM {table}_r")
    return shown, keyed[0]


def _rank(text: str | None) -> tuple[float, str]:
    """NULL first, then by value, NaN last; of equal numbers the text decides."""
    if text is None:
        return -math.inf, ""
    number = float(text)
    return (math.inf, "~") if math.isnan(number) else (min(number, 1e305), text)


@pytest.mark.parametrize(("floats", "by_text"), [(PLAIN, False), (SIGNED, True)])
def test_kept_floats_keep_their_signs_and_their_order(
    database: Database, floats: list[float | None], by_text: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts are needed only where equal floats look different: reckoning by value would lose a zero's sign."""
    released, keyed = _released(database, floats, monkeypatch)
    assert keyed is by_text
    assert sorted(str(_sign(x)) for _, x in released) == sorted(str(_sign(x)) for x in floats * 3)
    for region in {q for q, _ in released}:
        ranks = [_rank(x) for q, x in released if q == region]
        assert ranks == sorted(ranks)


def _sign(value: Any) -> tuple[float, float] | None:
    number = None if value is None else float(value)
    return None if number is None else (0.0 if math.isnan(number) else math.copysign(1, number), number)


def _field(number: int, bits: int) -> SimpleNamespace:
    return SimpleNamespace(number=number, coding=SimpleNamespace(bits=bits, is_aside=False))


BITS = st.lists(st.integers(0, 62), max_size=7)


@pytest.mark.parametrize(("bits", "keys"), [([21], 1), ([22], 2), ([20, 1, 0], 1), ([62, 62], 3), ([], 1)])
def test_a_key_is_filled_and_not_more(bits: list[int], keys: int) -> None:
    fields = [_field(n, width) for n, width in enumerate(bits)]
    coded: Any = SimpleNamespace(source_rows=2**40, kept=fields)  # a region takes 41 bits of 62
    assert len(_order(NO_ENGINE, coded, (coded.source_rows + 1).bit_length())) == keys


@settings(deadline=None)
@given(rows=st.integers(1, 2**40), bits=BITS, data=st.data())
def test_packed_keys_sort_as_codes_do(rows: int, bits: list[int], data: st.DataObject) -> None:
    fields = [_field(n, width) for n, width in enumerate(bits)]
    coded: Any = SimpleNamespace(source_rows=rows, kept=fields)
    row = st.tuples(st.integers(1, rows + 1), *(st.integers(0, max(0, 2**width - 1)) for width in bits))
    one, other = data.draw(row), data.draw(row)
    keys = list(map(renderer("duckdb").written, _order(NO_ENGINE, coded, (coded.source_rows + 1).bit_length())))

    def reckoned(values: tuple[int, ...]) -> list[int]:
        names = {"g": SimpleNamespace(region=values[0])}
        names["o"] = SimpleNamespace(**{f"k{n}": code for n, code in enumerate(values[1:])})
        found = [eval(key.replace('"', ""), {}, names) for key in keys]
        assert all(number < 2**62 for number in found)
        return found

    assert (one < other) == (reckoned(one) < reckoned(other))
