"""Hierarchies that cells climb one by one: labels must tell readers what they hold, on few enough levels."""

from __future__ import annotations

from collections.abc import Iterator

from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.taxonomy import Line, label_problems, read_taxonomy
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import Hierarchy, Role
from sqlanon.policy.document import path_text

MOST_LEVELS = 62  # of all columns together: in a set of these each has a bit


def climb_problems(subject: PlanSubject) -> Iterator[str]:
    """Say which hierarchies cells can't climb one by one."""
    algorithm = subject.policy.algorithm
    if not algorithm.has_wildcards:
        return
    levels = 0
    for column, attribute in subject.attributes:
        hierarchy = algorithm.hierarchy_of(attribute)
        if attribute.role is not Role.QUASI_IDENTIFIER or hierarchy is None:
            continue
        place = path_text(("attributes", column.name))
        if hierarchy.intervals is not None and column.kind is not Kind.INTEGER:
            yield (
                f"{place}: {algorithm.name} takes intervals of whole numbers, and the column is {column.type}; write"
                " the hierarchy as a file (sqlanon hierarchy export) and give it as csv, or"
                f" {subject.recast}."
            )
        try:
            lines = _lines_of(column, hierarchy)
        except PolicyError as error:
            yield str(error)
            continue
        yield from (f"{place}: {problem}" for problem in label_problems(lines, hierarchy.unknown))
        levels += len(lines[0].labels) if lines else _height_of(hierarchy)
    if levels > MOST_LEVELS:
        yield (
            f"algorithm: the hierarchies have {levels} levels together, and {algorithm.name} takes {MOST_LEVELS} at"
            " most; leave levels or columns out."
        )


def _lines_of(column: Column, hierarchy: Hierarchy) -> list[Line]:
    """Read the lines of a taxonomy; other hierarchies have none."""
    if hierarchy.kind not in ("csv", "mapping"):
        return []
    return read_taxonomy(hierarchy, None, lambda what: PolicyError(f"Hierarchy of column '{column.name}': {what}"))


def _height_of(hierarchy: Hierarchy) -> int:
    return hierarchy.length or len(hierarchy.intervals or hierarchy.date or ()) + 1
