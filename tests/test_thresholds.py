"""Splits at every threshold against brute force: no leaf that any threshold of any attribute could split, on both engines."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from sqlanon.engines.base import Engine
from sqlanon.errors import ProtectionError
from sqlanon.partition import collapse
from sqlanon.sql import Statement
from tests.mondrian_oracle import FLAVOURS, Attribute, satisfies, splittable
from tests.run_support import Database, Row, duckdb_url, open_database

FEW = settings(
    phases=[Phase.generate],
    max_examples=12,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ORDERED = Attribute("INTEGER", tuple(range(30)))
COARSE = Attribute("INTEGER", (None, 1, 2, 3, 4))
NESTED = next(a for a in FLAVOURS if a.path is not None and a.type == "INTEGER")
GROUPS = {"x": "1", "y": "1", "z": "2"}
SENSITIVE = {"s": -3, "u": -2}  # where they are in a row

TEXTS: list[dict[str, Any]] = [
    {"model": "distinct-l-diversity", "l": 3},
    {"model": "entropy-l-diversity", "l": 2.0},
    {"model": "recursive-l-diversity", "c": 1.0, "l": 1},
    {"model": "recursive-l-diversity", "c": 1.5, "l": 2},
    {"model": "recursive-l-diversity", "c": 3, "l": 3},
    {"model": "t-closeness", "distance": "equal", "t": 0.25},
    {"model": "t-closeness", "distance": "kl", "t": 0.25},
    {"model": "t-closeness", "distance": "hierarchical", "t": 0.2},
]
NUMBERS: list[dict[str, Any]] = [
    {"model": "variance-diversity", "v": 4.0},
    {"model": "t-closeness", "distance": "ordered", "t": 0.12},
    {"model": "distinct-l-diversity", "l": 4},
    {"model": "recursive-l-diversity", "c": 1.0, "l": 4},
    {"model": "entropy-l-diversity", "l": 3.0},
    {"model": "t-closeness", "distance": "equal", "t": 0.4},
]


@dataclass(frozen=True)
class Case:
    """A table `(q0, q1, …, s, u, id)` with two sensitive attributes, and the models asked for."""

    attributes: tuple[Attribute, ...]
    rows: tuple[Row, ...]
    models: tuple[dict[str, Any], ...]

    @property
    def columns(self) -> dict[str, str]:
        quasi = {f"q{i}": a.type for i, a in enumerate(self.attributes)}
        return {**quasi, "s": "VARCHAR(3)", "u": "INTEGER", "id": "INTEGER"}

    @property
    def roles(self) -> dict[str, Any]:
        quasi = {f"q{i}": a.policy for i, a in enumerate(self.attributes)}
        text: dict[str, Any] = {"role": "sensitive"}
        if any(model.get("distance") == "hierarchical" for model in self.models):
            text["hierarchy"] = {"mapping": GROUPS}
        return {**quasi, "s": text, "u": "sensitive", "id": "insensitive"}

    def satisfied_by(self, rows: Sequence[Row], hair: float = 1e-8) -> bool:
        return satisfies(self.models, rows, self.rows, SENSITIVE, hair)

    def surely_satisfied_by(self, rows: Sequence[Row]) -> bool:
        return self.satisfied_by(rows, hair=-1e-8)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    attributes = draw(st.lists(st.sampled_from([ORDERED, ORDERED, COARSE, NESTED]), min_size=1, max_size=3))
    texts = st.sampled_from(draw(st.sampled_from(["xyz", ["x", "x", "x", "y", "z", None]])))
    numbers = st.sampled_from(draw(st.sampled_from([[0, 1, 2, 5, 9, None], list(range(20))])))
    cells = st.tuples(*(st.sampled_from(a.pool) for a in attributes), texts, numbers)
    rows = draw(st.lists(cells, min_size=12, max_size=60))
    models = [{"attribute": "s", **m} for m in draw(st.lists(st.sampled_from(TEXTS), max_size=2, unique_by=str))]
    models += [{"attribute": "u", **m} for m in draw(st.lists(st.sampled_from(NUMBERS), max_size=2, unique_by=str))]
    smallest = {"model": "k-anonymity", "k": draw(st.integers(1, 4))}
    return Case(tuple(attributes), tuple((*row, i) for i, row in enumerate(rows)), (smallest, *models))


@pytest.fixture
def databases(tmp_path: Path, postgres_url: str) -> Iterator[tuple[Database, Database]]:
    with contextlib.ExitStack() as stack:
        urls = (duckdb_url(tmp_path / "test.duckdb"), postgres_url)
        yield tuple(stack.enter_context(open_database(url)) for url in urls)  # type: ignore[misc]


def _released(database: Database, case: Case, *, weighted: bool) -> list[Row] | None:
    """The release, from distinct tuples with counts or from rows; None where nothing meets the models."""
    table = database.create(case.columns, case.rows)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(collapse, "WORTH_SHARE", 2.0 if weighted else -1.0)
            return database.release(table, case.roles, privacy=list(case.models))
    except ProtectionError:
        return None
    finally:
        database.sql(f"DROP TABLE IF EXISTS {table}_r")
        database.sql(f"DROP TABLE {table}")


@FEW
@given(case=cases())
def test_no_leaf_can_be_split_at_any_threshold(databases: tuple[Database, Database], case: Case) -> None:
    duck, postgres = databases
    released = _released(duck, case, weighted=False)
    assert released == _released(postgres, case, weighted=True), "engines, or rows and tuples, differ"
    if released is None:
        assert not case.surely_satisfied_by(case.rows)
        return
    width = len(case.attributes)
    source = {row[-1]: row for row in case.rows}
    leaves: dict[Row, list[Row]] = {}
    for row in released:
        leaves.setdefault(row[:width], []).append(source[row[-1]])
    for region, leaf in leaves.items():
        note(f"{region}: {leaf}")
        assert case.satisfied_by(leaf)
        assert splittable(case.attributes, leaf, case.surely_satisfied_by) == []
