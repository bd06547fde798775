"""Answers that are made up for the statements of a run: of a small table, and a short search that succeeds.

Dictionaries have 1,000 values, a target three classes; a tree splits once more in its second round and ends in its
third; of a lattice the four most general nodes are looked at, and all of them satisfy the models.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlanon.encoding.frequency.lattice import Node
from sqlanon.measures.masking.scaling import UNIT
from sqlanon.models import models_of
from sqlanon.models.table_model import table_models
from sqlanon.plan.plan import Plan
from sqlanon.results.measures import THRESHOLDS
from sqlanon.runs.dry_run.script import Script
from sqlanon.sql import Statement

VALUES = 1_000  # made-up size of a dictionary
_ROUNDS = [(0, 1, 0), (1, 1, 2), (2, 0, 0)]  # of one tree


@dataclass
class FakeAnswers:
    """Answers that fit each other, by what was answered so far.

    script: the statements so far.
    plan: of the run, as soon as there is one.
    rounds: of the rounds of a tree that are to come: leaves, active nodes, the furthest stage of these.
    gains: nodes that can be split by gain, of each round.
    bottom: of the lattice that is searched.
    stacked: generalizations that the last table of frequency sets holds.
    omitted: rows that the search suppressed, and that the release lacks.
    """

    script: Script
    plan: Plan = field(init=False)
    rounds: list[tuple[int, int, int]] = field(default_factory=lambda: list(_ROUNDS))
    gains: list[int] = field(default_factory=lambda: [1, 0])
    bottom: Node = ()
    stacked: list[int] = field(default_factory=list)
    omitted: int = 0

    def answer(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Make up the rows of a query: those that are written here; else no row for a list, and one of zeros."""
        family, verb = statement.name.rpartition("/")[0] + "/", statement.name.rpartition("/")[2].partition("_")[0]
        by_default = _nothing if verb == "list" else _ANSWERS.get(family) or _zeros
        return (_ANSWERS.get(statement.name) or by_default)(self, statement)


def stacked(statement: Statement) -> list[int]:
    """The numbers of the generalizations that a statement counts."""
    numbers = re.findall(r"^\s+\((\d+), [\d, -]+\)|\bSELECT (\d+) AS node", statement.text, re.MULTILINE)
    return [int(several or single) for several, single in numbers]


def _nothing(_answers: FakeAnswers, _statement: Statement) -> list[tuple[Any, ...]]:
    """No row: of whatever is listed, such as the classes that a model leaves open, there is none."""
    return []


def _zeros(_answers: FakeAnswers, statement: Statement) -> list[tuple[Any, ...]]:
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


def _count_nodes(answers: FakeAnswers, _statement: Statement) -> list[tuple[Any, ...]]:
    leaves, active, stage = answers.rounds.pop(0)
    answers.rounds = answers.rounds or list(_ROUNDS)  # for the next tree
    return [(leaves, active, answers.plan.rows if active else 0, stage * _searches(answers), active)]


def _searches(answers: FakeAnswers) -> bool:
    """Tell whether a run might search nodes at every threshold (see `tree.thresholds.searchable`)."""
    depends_on_values = any(not model.decided_by_size for model in models_of(answers.plan.policy))
    return depends_on_values and any(attribute.hierarchy is None for attribute in answers.plan.quasi_identifiers)


def _count_settled(answers: FakeAnswers, _statement: Statement) -> list[tuple[Any, ...]]:
    """One leaf is sampled again, after the first episode."""
    episodes = answers.script.count("methods/partitioning/sampling/decide/count_settled")
    return [(1, answers.plan.rows) if episodes == 1 else (0, 0)]


def _scored_cuts(answers: FakeAnswers, _statement: Statement) -> list[tuple[Any, ...]]:
    """The first round makes a cut, the second one finds none."""
    return [(0, 1)] if answers.script.count("methods/intervals/score_cuts") == 1 else []


def _cut_sets(answers: FakeAnswers, statement: Statement) -> list[tuple[Any, ...]]:
    """All sets of cuts satisfy the models, and none costs less than another."""
    heads = re.findall(r"CAST\((\d+) AS BIGINT\) AS head", statement.text)
    return [(int(head), answers.plan.rows, 1, 0) for head in heads]


def _gain_nodes(answers: FakeAnswers, _statement: Statement) -> list[tuple[Any, ...]]:
    answers.gains = answers.gains or [1, 0]  # for the next tree
    return [(answers.gains.pop(0),)]


def _gain_splits(answers: FakeAnswers, _statement: Statement) -> list[tuple[Any, ...]]:
    """The first round splits its node by gain, the second one hands a node on."""
    return [(0, 1, answers.plan.rows, answers.plan.rows) if answers.gains else (1, 0, 0, 0)]


def _gain_parts(answers: FakeAnswers, _statement: Statement) -> list[tuple[Any, ...]]:
    """A bin of every attribute without a hierarchy may hold a better cut."""
    return [(number, 1) for number, a in enumerate(answers.plan.quasi_identifiers) if a.hierarchy is None]


def _digits(_answers: FakeAnswers, statement: Statement) -> list[tuple[Any, ...]]:
    digits = len(re.findall(r"\bmax\(", statement.text))
    return [(VALUES, *[9] * digits)]


def _axes(answers: FakeAnswers, _statement: Statement) -> list[tuple[Any, ...]]:
    return [(VALUES, False) * len(answers.plan.quasi_identifiers)]


def _suppressed(answers: FakeAnswers) -> int:
    """One row, if any may be: then the statements about suppressed rows are there.

    Models of a whole release decide by the sizes of its classes, by which these satisfy them: they leave no row out.
    """
    if table_models(models_of(answers.plan.policy)):
        return 0
    return min(1, int(answers.plan.policy.suppression * answers.plan.rows))


def _marginal(answers: FakeAnswers, statement: Statement) -> list[tuple[Any, ...]]:
    """Half as many groups on each level as below."""
    rows, levels = answers.plan.rows, statement.text.count("GROUP BY g.leaves")
    groups = [(level, 2**level, max(1, VALUES >> level), rows, 0.0) for level in range(levels + 1)]
    return [(-1, 0, 0, None, None), *groups]


def _class_sizes(answers: FakeAnswers, statement: Statement) -> list[tuple[Any, ...]]:
    """One class, and one more of the row that is suppressed, if any is."""
    gone = _suppressed(answers)
    sizes = [(answers.plan.rows - gone, 1), *[(1, 1)] * gone]
    return [(node, *size) for node in stacked(statement) for size in sizes]


def _gains(_answers: FakeAnswers, statement: Statement) -> list[tuple[Any, ...]]:
    """Two children of the root, which are values."""
    return [(statement.text.count("WHERE p.level ="), 0, 2, 1)]


def _group_sizes(answers: FakeAnswers, statement: Statement) -> list[tuple[Any, ...]]:
    """One group on each level."""
    return [(level, answers.plan.rows, 1) for level in range(statement.text.count("GROUP BY g.n"))]


def _length(answers: FakeAnswers) -> int:
    """The characters of all texts that are masked: five, or as few as the shortest mask is for."""
    hierarchies = [one.hierarchy for one in answers.plan.policy.attributes.values()]
    return min([5, *(one.length for one in hierarchies if one is not None and one.length is not None)])


def _ranges_of_numbers(answers: FakeAnswers, statement: Statement) -> list[tuple[Any, ...]]:
    """All rows know their numbers, which lie between 0 and 1."""
    rows = answers.plan.rows
    return [(rows, *(rows, 0, 0.0, 1.0) * ((_columns(statement.text) - 1) // 4))]


def _power_sums(answers: FakeAnswers, statement: Statement) -> list[tuple[Any, ...]]:
    """Numbers that are near the least one, and differ."""
    rows, numbers = answers.plan.rows, len(set(re.findall(r"\bAS z(\d+)", statement.text)))
    products = _columns(statement.text) - 1 - 2 * numbers
    return [(rows, *(rows, 0) * numbers, *[UNIT] * products)]


def _sizes_of_columns(_answers: FakeAnswers, statement: Statement) -> list[tuple[Any, ...]]:
    """Two values in each column, as often in both tables."""
    return [(place, True, 2) for place in range(statement.text.count("TRUE AS is_size"))]


def _candidate(answers: FakeAnswers, statement: Statement) -> list[tuple[Any, ...]]:
    """One candidate in each iteration: the first attributes, at the bottom of the lattice."""
    size = statement.text.count("c.dim_")
    return [(0, *range(size), *answers.bottom[:size])]


def _measured_classes(answers: FakeAnswers, _statement: Statement) -> list[tuple[Any, ...]]:
    """As of a table without a class, which satisfies whatever model."""
    models = [(place + 1, 0, 0, None, None, 0) for place in range(len(answers.plan.policy.privacy))]
    return [(-1, None, 0, None, None, None), *models]


_ANSWERS: dict[str, Callable[[FakeAnswers, Statement], list[tuple[Any, ...]]]] = {
    "catalog/give_lock_back": lambda *_: [(True,)],
    "catalog/take_lock": lambda *_: [(True,)],
    "releases/rules/digest_tables": lambda *_: [],
    "releases/rules/count_torn": lambda *_: [(0, 0, 0)],
    "releases/rules/count_segments": lambda answers, _: [(n, 3) for n, _a in enumerate(answers.plan.quasi_identifiers)],
    "releases/rules/measure_depth": lambda *_: [(2,)],
    "encoding/find_quantile": lambda answers, _: [(len(answers.script.steps),)],  # each greater than the one before
    "measures/count_unique": lambda answers, s: [
        (number, 0, 0, answers.plan.rows, VALUES) for number in range(s.text.count("AS number"))
    ],
    "measures/masking/measure_ranges": _ranges_of_numbers,
    "measures/masking/measure_power_sums": _power_sums,
    "methods/clustering/search/count_strata": lambda answers, _: [(1, answers.plan.rows)],
    "measures/masking/count_changes": lambda *_: [],
    "measures/masking/compare_contingency_tables": _sizes_of_columns,
    "measures/measure_classes": lambda answers, _: [(answers.plan.rows, 1)],
    "measures/estimate_classes": lambda answers, _: [(answers.plan.rows, True, 1)],
    "count_rows": lambda answers, _: [(answers.plan.rows - answers.omitted,)],
    "methods/partitioning/gain/decide/count_classes": lambda *_: [(3,)],
    "methods/partitioning/gain/decide/count_nodes": _gain_nodes,
    "methods/partitioning/gain/decide/count_parts": _gain_parts,
    "methods/partitioning/gain/decide/count_splits": _gain_splits,
    "encoding/count_signed": lambda *_: [(0,)],
    "methods/clustering/gathering/count_clusters": lambda answers, _: [(1, 1, answers.plan.rows)],
    "methods/clustering/gathering/find_reach": lambda *_: [(1,)],
    "methods/clustering/gathering/measure_gathered": lambda answers, _: [
        (1, answers.plan.rows, answers.plan.rows, answers.plan.rows, 1)
    ],
    "hierarchies/count_torn_groups": lambda *_: [],
    "hierarchies/measure_length": lambda answers, _: [(_length(answers),) * 2],
    "hierarchies/measure_openings": lambda answers, _: [
        (level, 9, VALUES // 6) for level in range(_length(answers) + 1)
    ],
    "hierarchies/measure_digits": _digits,
    "methods/generalization/lattice/count_class_sizes": _class_sizes,
    "methods/generalization/lattice/count_failing_sizes": lambda answers, _: [(1, 1)] * _suppressed(answers),
    "methods/generalization/lattice/count_group_sizes": _group_sizes,
    "encoding/frequency/count_sizes": lambda answers, _: [(answers.plan.rows, 1, 0, 0)],
    "methods/generalization/lattice/count_sizes_each": lambda answers, s: [
        (node, answers.plan.rows, 1, 0, 0, VALUES) for node in stacked(s)
    ],
    "methods/generalization/lattice/count_suppressed_sizes": lambda *_: [],
    "methods/generalization/lattice/count_failing_each": lambda answers, s: [
        (node, _suppressed(answers), 0, VALUES) for node in stacked(s)
    ],
    "methods/generalization/lattice/count_sets": lambda answers, _: [(node, VALUES) for node in answers.stacked],
    "methods/generalization/lattice/count_small_each": lambda answers, s: [
        (node, _suppressed(answers), VALUES) for node in stacked(s)
    ],
    "methods/generalization/lattice/list_candidates": _candidate,
    "encoding/frequency/count_failing": lambda answers, _: [(_suppressed(answers), 0)],
    "encoding/frequency/count_small": lambda answers, _: [(_suppressed(answers),)],
    "encoding/frequency/measure_marginal": _marginal,
    "encoding/frequency/sum_failing": lambda answers, _: [(_suppressed(answers), 0, _suppressed(answers))],
    "models/": lambda *_: [(0, 0.0, False)],
    "algorithms/tree/decide/count_nodes": _count_nodes,
    "encoding/measure_axes": _axes,
    "encoding/sample_tuples": lambda answers, _: [(answers.plan.rows, answers.plan.rows, answers.plan.rows, 0)],
    "verification/compare_classes": lambda *_: [(0, 0)],
    "measures/count_bands": lambda answers, _: [(0, answers.plan.rows, 1, VALUES)],
    "measures/count_frequent": lambda answers, _: [(1, answers.plan.rows)],
    "measures/measure_spread": lambda _, s: [([0.0, 100.0],) * s.text.count("percentile_disc")],
    "encoding/measure_range": lambda *_: [(0.0, 1.0)],
    "methods/partitioning/sampling/decide/count_settled": _count_settled,
    "methods/partitioning/sampling/scan/count_short": lambda *_: [(0,)],
    "methods/partitioning/sampling/decide/measure_tree": lambda *_: [(2, 5, 5)],
    "methods/intervals/list_points": lambda *_: [(0, 1)],
    "methods/intervals/measure_sets": _cut_sets,
    "methods/intervals/score_cuts": _scored_cuts,
    "methods/generalization/specialization/count_nulls": lambda *_: [(0,)],
    "methods/generalization/specialization/measure_gains": _gains,
    "verification/compare_multisets": lambda answers, _: [(0, answers.omitted)],
    "verification/digest_multisets": lambda *_: [(True,)],
    "measures/workload/measure_information": lambda answers, _: [(1, answers.plan.rows, 0)],
    "measures/workload/measure_span": lambda *_: [(0.0, 1.0)],
    "measures/workload/measure_squares": lambda answers, _: [(answers.plan.rows, 0, 0, 0)],
    "measures/measure_disclosure": lambda *_: [(0, 0, None, *[0] * len(THRESHOLDS))],
    "verification/measure_matching": _measured_classes,
    "verification/measure_matching_values": _measured_classes,
    "verification/measure_avs": _measured_classes,
    "verification/measure_classes": _measured_classes,
    "verification/measure_mapped_classes": _measured_classes,
}
