"""Rows that rules star, as the class that a reader sees: others join them until they satisfy the models."""

from __future__ import annotations

from sqlanon.lattice.frequency import FrequencySet, FrequencySets, count_tuples, named_groups, sensitive_column
from sqlanon.lattice.keys import WholeKeys
from sqlanon.lattice.stars import complete_stars
from sqlanon.lattice.task import Task
from sqlanon.partition.domains import create_domains
from sqlanon.rules.classes import Suppression


def complete(search: Suppression, suppressed: int, most: int) -> int:
    """Suppress the smallest other classes, too, until the suppressed rows satisfy the models as one class.

    suppressed: the rows that `search` has suppressed; most: how many may be. Returns how many are then, or a number
    above `most` where no classes within it do; these stay as they are.
    """
    engine, workspace, coded = search.engine, search.workspace, search.coded
    domains = create_domains(engine, workspace, coded, search.models)
    tuples = workspace.table("tuples")
    engine.run(
        "rules/create_tuples",
        tuples=tuples,
        assigned=search.applied.assigned,
        regions=search.applied.regions,
        sensitive=[{"word": s.word, "mask": s.mask, "column": sensitive_column(i)} for i, s in enumerate(domains)],
    )
    engine.analyze(tuples)
    task = Task(tuple(search.models), domains, search.rows, most, omits=False, judges_stars=True)
    base = FrequencySet(tuples, (), count_tuples(engine, tuples, -1))
    sets = FrequencySets(engine, workspace, coded, task, WholeKeys((), 1), base)
    rows = complete_stars(sets, named_groups(domains), ((), tuples, search.table), suppressed)
    (classes, _) = engine.query_one("rules/count_suppressed", classes=search.table)
    search.classes = int(classes)
    workspace.drop(tuples, *(one.domain for one in domains))
    return rows
