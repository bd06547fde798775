"""Kinds of hierarchies that installed packages add: labels that one SELECT gives each value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from markupsafe import Markup

from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.draft import HierarchyDraft, HierarchyTask, check_nesting, value_order
from sqlanon.policy import Hierarchy, HierarchyParameters
from sqlanon.sql import Expression, Identifier, Renderer, Statement
from sqlanon.support.plugins import HIERARCHIES, load_plugin
from sqlanon.support.quantities import quantity


class ComputedHierarchy(ABC):
    """A hierarchy whose labels follow from a value and the parameters alone.

    Parameters: the class of the parameters in policies; its docstring is what people read of the hierarchy.
    """

    Parameters: ClassVar[type[HierarchyParameters]]

    def __init__(self, parameters: Any) -> None:
        self.parameters = parameters

    @property
    @abstractmethod
    def levels(self) -> int:
        """The number of levels between the value itself and `*`."""

    @abstractmethod
    def labels(self, render: Renderer, column: Column, values: Expression) -> Statement:
        """SELECT `(value, l1, l2, …)`: each value of `values v(value)` with its labels, from level 1 to `levels`.

        NULL is not among the values. A label is a text, and follows from its value and the parameters alone.
        """

    def problems(self, column: Column) -> list[str]:  # noqa: ARG002
        """Say what keeps it from fitting a column."""
        return []


def computed_hierarchy(spec: Hierarchy) -> ComputedHierarchy | None:
    """Make the hierarchy of a kind that an installed package adds; None for the program's own kinds.

    Raises PolicyError where it can't be loaded.
    """
    if not spec.added:
        return None
    (name,) = spec.added
    added = load_plugin(HIERARCHIES, name, ComputedHierarchy)  # type: ignore[type-abstract]
    if added is None:
        raise PolicyError(f"There is no kind of hierarchy '{name}'; is the package that adds it installed?")
    return added(getattr(spec, name))


def draft_computed(task: HierarchyTask) -> HierarchyDraft:
    """Compute a line for each value, and draft the hierarchy as a taxonomy of these lines.

    Raises PolicyError where a value has no line or several, where a label is missing, or where levels do not nest.
    """
    hierarchy = computed_hierarchy(task.spec)
    assert hierarchy is not None
    engine, height = task.engine, hierarchy.levels + 1
    inner, levels = range(1, height), range(1, height + 1)
    labels = hierarchy.labels(engine.render, task.column, Markup(str(task.values)))
    names = {"paths": task.paths, "labels": labels, "text": task.text, "order": value_order(task)}
    engine.run("hierarchies/compute_paths", inner=inner, root=height, **names)
    lines, odd = engine.query_one(
        "hierarchies/count_odd_paths", paths=task.paths, values=task.values, text=task.text, levels=levels
    )
    if odd:
        raise task.error(
            f"{task.spec.kind} gives no line, several, or a missing or empty label to {quantity(odd, 'value')}."
        )
    check_nesting(task, height, task.paths)
    engine.run("hierarchies/match_paths", leaves=task.leaves, values=task.values, text=task.text, paths=task.paths)
    engine.run("hierarchies/group_paths", groups=task.groups, leaves=task.leaves, paths=task.paths, levels=levels)
    return HierarchyDraft(height=height, keys=(Identifier("l1"),), lines=int(lines))
