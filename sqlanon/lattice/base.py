"""The base: the frequency set of the ungeneralized table, from which all others are counted."""

from __future__ import annotations

from typing import Any

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.lattice.frequency import FrequencySet, FrequencySets, count_tuples, count_type, sensitive_column
from sqlanon.lattice.keys import lay_out
from sqlanon.lattice.task import Task
from sqlanon.partition.collapse import sample_tuples
from sqlanon.sql import expression
from sqlanon.work.workspace import Workspace

WORTH_SHARE = 0.7  # distinct tuples per row up to which counting them once pays


def create_base(
    engine: Engine, workspace: Workspace, coded: CodedTable, task: Task, suppresses: bool = False
) -> FrequencySets:
    """Count the ungeneralized table once, unless nearly every row is a tuple of its own.

    `suppresses` is whether attributes are shown as they are or as `*`, with nothing between.
    """
    keys = lay_out(coded.quasi_identifiers, suppresses)
    sensitive: list[dict[str, Any]] = [
        {
            "name": sensitive_column(i),
            "value": expression("{word} & {mask}", word=one.word, mask=one.mask),
        }
        for i, one in enumerate(task.sensitive)
    ]
    values = [*keys.packed(), *sensitive]
    base = workspace.table("base")
    fields = [*coded.quasi_identifiers, *(coded.judged_field(one.name) for one in task.sensitive)]
    groups = sample_tuples(engine, coded, fields).distinct_share <= WORTH_SHARE
    tuples = engine.run(
        "lattice/create_base" if groups else "lattice/create_plain_base",
        base=base,
        rows=coded.rows,
        values=values,
        columns=[value["name"] for value in values],
        count_type=count_type(task.rows),
    )
    engine.analyze(base)
    bottom = tuple(0 for _ in keys.dimensions)
    return FrequencySets(
        engine, workspace, coded, task, keys, FrequencySet(base, bottom, count_tuples(engine, base, tuples))
    )
