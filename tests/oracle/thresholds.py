"""Tables and models whose partition trees need thresholds other than medians, and what their leaves must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st

from tests.methods.partitioning.mondrian_oracle import FLAVOURS, Attribute, satisfies, splittable
from tests.run_support import Row

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
    {"model": "beta-likeness", "form": "basic", "beta": 1.3},
    {"model": "beta-likeness", "form": "enhanced", "beta": 1.1},
    {"model": "delta-disclosure", "delta": 1.05},
    {"model": "alpha-k", "alpha": 0.5, "k": 3},
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
def cases(draw: st.DrawFn, *wanted: str) -> Case:
    """A random case; of the models named, by their distances in the case of t-closeness, where some are."""
    attributes = [ORDERED, *draw(st.lists(st.sampled_from([ORDERED, COARSE, NESTED]), max_size=2))]
    numbers = draw(st.randoms(use_true_random=False))
    sides = draw(st.sampled_from([("x", "xyz"), (["x", "x", "y"], ["x", "y", "z", None]), ("xyz", "xyz")]))
    amounts = draw(st.sampled_from([([3], range(20)), ([2, 3], [0, 3, 9, 19, None]), (range(20), range(20))]))
    turn = draw(st.integers(0, 30))
    rows = []
    for _ in range(draw(st.integers(12, 60))):
        cells = [numbers.choice(a.pool) for a in attributes]
        side = int((cells[0] or 0) >= turn)  # what is sensitive goes with the first attribute: medians fail
        rows.append((*cells, numbers.choice(sides[side]), numbers.choice(amounts[side])))
    offered = [{"attribute": "s", **m} for m in TEXTS] + [{"attribute": "u", **m} for m in NUMBERS]
    offered = [m for m in offered if not wanted or m.get("distance", m["model"]) in wanted]
    models = numbers.sample(offered, min(len(offered), numbers.choice([1, 1, 2, 3])))
    smallest = {"model": "k-anonymity", "k": draw(st.integers(1, 4))}
    return Case(tuple(attributes), tuple((*row, i) for i, row in enumerate(rows)), (smallest, *models))


def check_leaves(case: Case, released: Sequence[Row]) -> None:
    """Hold the classes of a release, whose last column is `id`, against the models and every further threshold."""
    width = len(case.attributes)
    source = {row[-1]: row for row in case.rows}
    leaves: dict[Row, list[Row]] = {}
    for row in released:
        leaves.setdefault(row[:width], []).append(source[row[-1]])
    for region, leaf in leaves.items():
        if currently_in_test_context():
            note(f"{region}: {leaf}")
        assert case.satisfied_by(leaf)
        assert splittable(case.attributes, leaf, case.surely_satisfied_by) == []
