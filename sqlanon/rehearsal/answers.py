"""What a database would answer to the statements of a run, made up: a small table, a short search that succeeds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlanon.catalog import Step
from sqlanon.lattice.lattice import Node
from sqlanon.models import models_of
from sqlanon.plan import Plan
from sqlanon.results.measures import THRESHOLDS
from sqlanon.sql import Statement

VALUES = 1_000  # made-up size of a dictionary
_ROUNDS = [(0, 1, 0), (1, 1, 2), (2, 0, 0)]  # of one tree


@dataclass
class Scene:
    """What the answers so far add up to.

    steps: the statements so far.
    rounds: of the rounds of a tree that are to come: leaves, active nodes, the furthest stage of these.
    gains: nodes that can be split by gain, of each round.
    bottom: of the lattice that is searched.
    stacked: generalizations that the last table of frequency sets holds.
    """

    plan: Plan
    steps: list[Step] = field(default_factory=list)
    rounds: list[tuple[int, int, int]] = field(default_factory=lambda: list(_ROUNDS))
    gains: list[int] = field(default_factory=lambda: [1, 0])
    bottom: Node = ()
    stacked: list[int] = field(default_factory=list)


def answer(scene: Scene, statement: Statement) -> list[tuple[Any, ...]]:
    """The rows that are made up for a query; one row of zeros where nothing else is said."""
    family = statement.name.rsplit("/", 1)[0] + "/"
    return (_ANSWERS.get(statement.name) or _ANSWERS.get(family) or _zeros)(scene, statement)


def stacked(statement: Statement) -> list[int]:
    """The numbers of the generalizations that a statement counts."""
    numbers = re.findall(r"^\s+\((\d+), [\d, -]+\)|\bSELECT (\d+) AS node", statement.text, re.MULTILINE)
    return [int(several or single) for several, single in numbers]


def _zeros(_scene: Scene, statement: Statement) -> list[tuple[Any, ...]]:
    """One row, zero in each column."""
    return [(0,) * _columns(statement.text)]


def _columns(text: str) -> int:
    """The columns of a query: one more than the commas between its SELECT and FROM, those in parentheses left out."""
    depth, columns = 0, 0
    for token in re.findall(r"'[^']*'|\"[^\"]*\"|[(),]|\w+", text):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth == 0 and columns and token.upper() in ("FROM", "UNION"):
            break
        if depth == 0 and (token == "," if columns else token.upper() == "SELECT"):
            columns += 1
    return max(columns, 1)


def _count_nodes(scene: Scene, _statement: Statement) -> list[tuple[Any, ...]]:
    leaves, active, stage = scene.rounds.pop(0)
    scene.rounds = scene.rounds or list(_ROUNDS)  # for the next tree
    return [(leaves, active, scene.plan.rows if active else 0, stage * _searches(scene), active)]


def _searches(scene: Scene) -> bool:
    """Whether a run might search nodes at every threshold (see `partition.thresholds.searchable`)."""
    looks = any(not model.decided_by_size for model in models_of(scene.plan.policy))
    return looks and any(attribute.hierarchy is None for attribute in scene.plan.quasi_identifiers)


def _count_settled(scene: Scene, _statement: Statement) -> list[tuple[Any, ...]]:
    """One leaf is sampled again, after the first episode."""
    episodes = sum(step.name == "sampling/count_settled" for step in scene.steps)
    return [(1, scene.plan.rows) if episodes == 1 else (0, 0)]


def _gain_nodes(scene: Scene, _statement: Statement) -> list[tuple[Any, ...]]:
    scene.gains = scene.gains or [1, 0]  # for the next tree
    return [(scene.gains.pop(0),)]


def _gain_splits(scene: Scene, _statement: Statement) -> list[tuple[Any, ...]]:
    """The first round splits its node by gain, the second one hands a node on."""
    return [(0, 1, scene.plan.rows, scene.plan.rows) if scene.gains else (1, 0, 0, 0)]


def _gain_parts(scene: Scene, _statement: Statement) -> list[tuple[Any, ...]]:
    """A bin of every attribute without a hierarchy may hold a better cut."""
    return [(number, 1) for number, a in enumerate(scene.plan.quasi_identifiers) if a.hierarchy is None]


def _digits(_scene: Scene, statement: Statement) -> list[tuple[Any, ...]]:
    digits = len(re.findall(r"\bmax\(", statement.text))
    return [(VALUES, *[9] * digits)]


def _axes(scene: Scene, _statement: Statement) -> list[tuple[Any, ...]]:
    return [(VALUES, False) * len(scene.plan.quasi_identifiers)]


def _suppressed(scene: Scene) -> int:
    """One row, if any may be: then the statements about suppressed rows are there."""
    return min(1, int(scene.plan.policy.suppression * scene.plan.rows))


def _marginal(scene: Scene, statement: Statement) -> list[tuple[Any, ...]]:
    """Half as many groups on each level as below."""
    rows, levels = scene.plan.rows, statement.text.count("GROUP BY g.leaves")
    groups = [(level, 2**level, max(1, VALUES >> level), rows, 0.0) for level in range(levels + 1)]
    return [(-1, 0, 0, None, None), *groups]


def _class_sizes(scene: Scene, statement: Statement) -> list[tuple[Any, ...]]:
    """One class, and one more of the row that is suppressed, if any is."""
    gone = _suppressed(scene)
    sizes = [(scene.plan.rows - gone, 1), *[(1, 1)] * gone]
    return [(node, *size) for node in stacked(statement) for size in sizes]


def _gains(_scene: Scene, statement: Statement) -> list[tuple[Any, ...]]:
    """Two children of the root, which are values."""
    return [(statement.text.count("WHERE p.level ="), 0, 2, 1)]


def _group_sizes(scene: Scene, statement: Statement) -> list[tuple[Any, ...]]:
    """One group on each level."""
    return [(level, scene.plan.rows, 1) for level in range(statement.text.count("GROUP BY g.n"))]


def _candidate(scene: Scene, statement: Statement) -> list[tuple[Any, ...]]:
    """One candidate in each iteration: the first attributes, at the bottom of the lattice."""
    size = statement.text.count("c.dim_")
    return [(0, *range(size), *scene.bottom[:size])]


def _measured_classes(scene: Scene, _statement: Statement) -> list[tuple[Any, ...]]:
    """As of a table without a class, which satisfies whatever model."""
    models = [(place + 1, 0, 0, None, None, 0) for place in range(len(scene.plan.policy.privacy))]
    return [(-1, None, 0, None, None, None), *models]


_ANSWERS: dict[str, Callable[[Scene, Statement], list[tuple[Any, ...]]]] = {
    "rules/digest_tables": lambda *_: [],
    "rules/count_torn": lambda *_: [(0, 0, 0)],
    "rules/count_segments": lambda scene, _: [(n, 3) for n, _a in enumerate(scene.plan.quasi_identifiers)],
    "rules/measure_depth": lambda *_: [(2,)],
    "encoding/find_quantile": lambda scene, _: [(len(scene.steps),)],  # each greater than the one before
    "encoding/count_unique": lambda scene, s: [
        (number, 0, 0, scene.plan.rows, VALUES) for number in range(s.text.count("AS number"))
    ],
    "encoding/measure_classes": lambda scene, _: [(scene.plan.rows, 1)],
    "encoding/estimate_classes": lambda scene, _: [(scene.plan.rows, True, 1)],
    "count_rows": lambda scene, _: [(scene.plan.rows,)],
    "gain/count_classes": lambda *_: [(3,)],
    "gain/count_nodes": _gain_nodes,
    "gain/count_parts": _gain_parts,
    "gain/count_splits": _gain_splits,
    "encoding/count_signed": lambda *_: [(0,)],
    "hierarchies/count_torn_groups": lambda *_: [],
    "hierarchies/measure_length": lambda *_: [(5, 5)],
    "hierarchies/measure_openings": lambda *_: [(level, 9, VALUES // 6) for level in range(6)],
    "hierarchies/measure_digits": _digits,
    "lattice/count_class_sizes": _class_sizes,
    "lattice/count_failing_sizes": lambda scene, _: [(1, 1)] * _suppressed(scene),
    "lattice/count_group_sizes": _group_sizes,
    "lattice/count_suppressed_sizes": lambda *_: [],
    "lattice/count_failing_each": lambda scene, s: [(node, _suppressed(scene), 0, VALUES) for node in stacked(s)],
    "lattice/count_sets": lambda scene, _: [(node, VALUES) for node in scene.stacked],
    "lattice/count_small_each": lambda scene, s: [(node, _suppressed(scene), VALUES) for node in stacked(s)],
    "lattice/list_candidates": _candidate,
    "lattice/list_edges": lambda *_: [],
    "lattice/count_failing": lambda scene, _: [(_suppressed(scene), 0)],
    "lattice/count_small": lambda scene, _: [(_suppressed(scene),)],
    "lattice/measure_marginal": _marginal,
    "lattice/sum_failing": lambda scene, _: [(_suppressed(scene), 0, _suppressed(scene))],
    "models/": lambda *_: [(0, 0.0, False)],
    "partition/count_nodes": _count_nodes,
    "partition/measure_axes": _axes,
    "partition/sample_tuples": lambda scene, _: [(scene.plan.rows, scene.plan.rows, scene.plan.rows, 0)],
    "release/compare_classes": lambda *_: [(0, 0)],
    "release/count_bands": lambda scene, _: [(0, scene.plan.rows, 1, VALUES)],
    "release/count_frequent": lambda scene, _: [(1, scene.plan.rows)],
    "release/measure_spread": lambda _, s: [([0.0, 100.0],) * s.text.count("percentile_disc")],
    "release/measure_range": lambda *_: [(0.0, 1.0)],
    "sampling/count_settled": _count_settled,
    "sampling/count_short": lambda *_: [(0,)],
    "sampling/measure_tree": lambda *_: [(2, 5, 5)],
    "specialization/count_nulls": lambda *_: [(0,)],
    "specialization/measure_gains": _gains,
    "verify/compare_multisets": lambda *_: [(0, 0)],
    "verify/digest_multisets": lambda *_: [(True,)],
    "workload/measure_information": lambda scene, _: [(1, scene.plan.rows, 0)],
    "workload/measure_span": lambda *_: [(0.0, 1.0)],
    "verify/measure_disclosure": lambda *_: [(0, 0, None, *[0] * len(THRESHOLDS))],
    "verify/measure_avs": _measured_classes,
    "verify/measure_classes": _measured_classes,
}
