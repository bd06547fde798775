"""The base: the frequency set of the ungeneralized table, from which all others are counted."""

from __future__ import annotations

from typing import Any

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.encoding.frequency.frequency_sets import (
    FrequencySet,
    FrequencySets,
    count_tuples,
    count_type,
    sensitive_column,
)
from sqlanon.encoding.frequency.keys import Keys, lay_out
from sqlanon.encoding.frequency.task import LatticeTask
from sqlanon.engines.base import Engine
from sqlanon.sql import Identifier, Relation, macro
from sqlanon.work.workspace import Workspace


def create_base(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    tuples: Tuples | None,
    task: LatticeTask,
    suppresses: bool = False,
) -> FrequencySets:
    """Lay out the keys of the ungeneralized table: of its distinct tuples, or else of all rows.

    tuples: of the quasi-identifiers and of what the models look at; they are dropped.
    suppresses: whether attributes are shown as they are or as `*`, with nothing between.
    """
    keys = lay_out(coded.quasi_identifiers, suppresses)
    sensitive: list[dict[str, Any]] = [
        {
            "name": sensitive_column(i),
            "value": macro("bits.masked", one.word, one.mask),
        }
        for i, one in enumerate(task.sensitive)
    ]
    base = workspace.table("base")
    written = engine.run(
        "methods/generalization/lattice/create_base",
        base=base,
        rows=coded.rows if tuples is None else tuples.table,
        values=[*keys.packed(), *sensitive],
        count=1 if tuples is None else Identifier("w"),
        count_type=count_type(task.rows),
    )
    if tuples is not None:
        workspace.drop(tuples.table)
    engine.analyze(base)
    bottom = tuple(0 for _ in keys.dimensions)
    whole = FrequencySet(base, bottom, count_tuples(engine, base, written))
    return FrequencySets(engine, workspace, coded, task, keys, whole, _count_population(engine, workspace, coded, keys))


def _count_population(engine: Engine, workspace: Workspace, coded: CodedTable, keys: Keys) -> Relation | None:
    """Lay out the keys of the population's distinct tuples, where models look at one."""
    if coded.population is None:
        return None
    tuples, population = workspace.table("population_tuples"), workspace.table("population_base")
    words = [{"name": column, "value": column} for column in coded.word_columns]
    engine.run("encoding/create_frequency_set", table=tuples, rows=coded.population, words=words)
    engine.run(
        "methods/generalization/lattice/create_base",
        base=population,
        rows=tuples,
        values=keys.packed(),
        count=Identifier("w"),
        count_type=macro("values.whole_type", False),
    )
    workspace.drop(tuples)
    engine.analyze(population)
    return population
