"""Many generalizations in one statement: their tuples are stacked, each beside the number of its generalization.

A statement over a few thousand tuples costs less to carry out than to plan, so that generalizations are counted
together where their sources are small, and one by one where they are large.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlanon.encoding.frequency.frequency_sets import FrequencySet, FrequencySets, count_type, sensitive_column
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.encoding.frequency.task import ClassesOfSize, Verdict
from sqlanon.sql import Expression, Identifier, Relation, macro

T = TypeVar("T")

BATCH_NODES = 200  # generalizations a statement


@dataclass(frozen=True)
class RollUp:
    """A generalization, and a frequency set of a more specific one to count it from."""

    node: Node
    source: FrequencySet


@dataclass(frozen=True)
class Count:
    """The verdict on one generalization, and the number of tuples that its frequency set would have."""

    verdict: Verdict
    tuples: int


def count_each(sets: FrequencySets, steps: Sequence[RollUp]) -> list[Count]:
    """Judge several generalizations, in their order.

    Where suppression moves what the remaining classes are judged by (`Task.moves`), `suppressed` are the rows in
    classes that fail while all rows are there: a lower bound.
    """
    sets.checked += len(steps)
    return answer_each(sets, steps, _count_small if sets.task.least_rows is not None else _count_failing)


def count_small_each(sets: FrequencySets, nodes: Sequence[Node]) -> list[Verdict]:
    """`FrequencySets.count_small` of several generalizations, in their order."""
    return [count.verdict for count in answer_each(sets, [RollUp(node, sets.base) for node in nodes], _count_small)]


def count_failing_each(sets: FrequencySets, nodes: Sequence[Node]) -> list[Verdict]:
    """`FrequencySets.count_failing` of several generalizations, in their order."""
    return [count.verdict for count in answer_each(sets, [RollUp(node, sets.base) for node in nodes], _count_failing)]


def class_sizes_each(sets: FrequencySets, nodes: Sequence[Node]) -> list[Counter[int]]:
    """Count the classes of each size of several generalizations, in their order."""
    return answer_each(sets, [RollUp(node, sets.base) for node in nodes], _class_sizes)


def answer_each(
    sets: FrequencySets, steps: Sequence[RollUp], count: Callable[[FrequencySets, dict[str, Any]], dict[int, T]]
) -> list[T]:
    """Ask the same of several generalizations, in their order.

    count: answers, by place, from the values of statements over those that one statement serves.
    """
    counts: dict[int, T] = {}
    for places in _batches(sets, steps):
        counts |= count(sets, _stacked(sets, steps, places))
    return [counts[place] for place in range(len(steps))]


def roll_up_each(sets: FrequencySets, steps: Sequence[RollUp]) -> list[FrequencySet]:
    """The frequency sets of several generalizations, in their order: those of one statement share a table."""
    rolled: dict[int, FrequencySet] = {}
    for places in _batches(sets, steps):
        table = sets.new_table()
        stacked = _stacked(sets, steps, places)
        used = {word["column"] for word in stacked["words"]}
        blank = [column for column in sets.keys.columns if column not in used]
        sets.engine.run(
            "methods/generalization/lattice/roll_up_each",
            rolled=table,
            blank=blank,
            count_type=count_type(sets.task.rows),
            **stacked,
        )
        sets.engine.analyze(table)
        tuples = dict(sets.engine.query("methods/generalization/lattice/count_sets", sets=table))
        rolled |= {place: FrequencySet(table, steps[place].node, tuples[place], place) for place in places}
    return [rolled[place] for place in range(len(steps))]


def _batches(sets: FrequencySets, steps: Sequence[RollUp]) -> Iterator[list[int]]:
    """The places of the steps that one statement serves: of one source table, and not too many."""
    most = sets.engine.traits.stacked_tuples
    tables: dict[Relation, list[int]] = {}
    for place, step in enumerate(steps):
        tables.setdefault(step.source.table, []).append(place)
    for places in tables.values():
        batch: list[int] = []
        tuples = 0
        for place in places:
            more = steps[place].source.tuples
            if batch and (tuples + more > most or len(batch) == BATCH_NODES):
                yield batch
                batch, tuples = [], 0
            batch.append(place)
            tuples += more
        yield batch


def _stacked(sets: FrequencySets, steps: Sequence[RollUp], places: Sequence[int]) -> dict[str, Any]:
    """Build the values of statements over several generalizations; `node` is a step's place."""
    source = steps[places[0]].source
    masks = {place: sets.keys.masks(steps[place].node) for place in places}
    words = [word for word in range(sets.keys.words) if any(masks[place][word] for place in places)] or [0]
    several = len(places) > 1
    return {
        "source": source.table,
        "numbered": source.number is not None,
        "generalizations": [
            (place, steps[place].source.number or 0, *(masks[place][word] for word in words)) for place in places
        ],
        "node": macro("lattice.of_generalization", Identifier("node")) if several else places[0],
        "masks": [_mask(word) for word in words],
        "words": [
            {
                "column": sets.keys.columns[word],
                "mask": macro("lattice.of_generalization", _mask(word)) if several else masks[places[0]][word],
            }
            for word in words
        ],
        "sensitive": [sensitive_column(number) for number in range(len(sets.task.sensitive))],
    }


def _mask(word: int) -> Identifier:
    return Identifier(f"m{word}")


def _count_small(sets: FrequencySets, stacked: dict[str, Any]) -> dict[int, Count]:
    rows = sets.engine.query("methods/generalization/lattice/count_small_each", k=sets.task.fewest_rows, **stacked)
    return {place: Count(Verdict(int(small), int(small)), int(tuples)) for place, small, tuples in rows}


def _count_failing(sets: FrequencySets, stacked: dict[str, Any]) -> dict[int, Count]:
    values_of_checks = checks_of_each(sets, stacked)
    if sets.task.table_models:
        return _count_by_sizes(sets, values_of_checks)
    rows = sets.engine.query("methods/generalization/lattice/count_failing_each", **values_of_checks)
    return {place: Count(Verdict(int(out), int(floor)), int(tuples)) for place, out, floor, tuples in rows}


def checks_of_each(sets: FrequencySets, stacked: dict[str, Any]) -> dict[str, Any]:
    """Build the values of statements over failing classes of several generalizations, from those of `_stacked`."""
    population = None
    if sets.population is not None:
        population = _generalized(sets, stacked | {"source": sets.population, "numbered": False, "sensitive": []})
    return sets.values_of_checks(
        sets.base.node,
        _generalized(sets, stacked),
        sets.task.sensitive,
        population=population,
        keys=[Identifier("node"), *(word["column"] for word in stacked["words"])],
        several=[place for place, *_ in stacked["generalizations"]],
    )


def _generalized(sets: FrequencySets, stacked: dict[str, Any]) -> Expression:
    return macro("lattice.subquery", sets.engine.render("methods/generalization/lattice/generalized_each", **stacked))


def _count_by_sizes(sets: FrequencySets, values_of_checks: dict[str, Any]) -> dict[int, Count]:
    counted: dict[int, list[ClassesOfSize]] = defaultdict(list)
    tuples: Counter[int] = Counter()
    for place, *one, of_tuples in sets.engine.query(
        "methods/generalization/lattice/count_sizes_each", **values_of_checks
    ):
        counted[int(place)].append(ClassesOfSize(*map(int, one)))
        tuples[int(place)] += int(of_tuples)
    return {place: Count(sets.task.verdict_of(sizes), tuples[place]) for place, sizes in counted.items()}


def _class_sizes(sets: FrequencySets, stacked: dict[str, Any]) -> dict[int, Counter[int]]:
    sizes: dict[int, Counter[int]] = defaultdict(Counter)
    for place, size, count in sets.engine.query("methods/generalization/lattice/count_class_sizes", **stacked):
        sizes[place][int(size)] = int(count)
    return sizes
