"""The rule table for people: what each rule is about, and what a row that falls under it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.policy import Show
from sqlanon.rules.box_labels import BoxLabels, create_box_labels
from sqlanon.rules.store import StoredRules
from sqlanon.rules.tables import RuleAttribute
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class Rule:
    """One rule: its number, the rows of the release under it, and the label of its box for each quasi-identifier."""

    leaf: int
    rows: int
    cells: tuple[str | None, ...]


class _Temporary(Workspace):
    """Names of temporary tables, which end with the session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def table(self, meaning: str, number: int | None = None) -> Relation:
        return self._engine.temporary(f"sqlanon_{meaning}" + ("" if number is None else f"_{number}"))


def list_rules(engine: Engine, stored: StoredRules, limit: int, offset: int) -> list[Rule]:
    """A page of the rules of a tree, with the labels of their boxes; those without rows in the release are last."""
    attributes = tuple(replace(a, show=Show.LABEL) for a in stored.attributes)
    return _fetch(engine, stored, attributes, limit, offset)


def fetch_rules(engine: Engine, stored: StoredRules) -> list[Rule]:
    """All rules of a tree, with what rows show that fall under them."""
    return _fetch(engine, stored, stored.attributes, stored.record.leaves, 0)


def _fetch(
    engine: Engine, stored: StoredRules, attributes: Sequence[RuleAttribute], limit: int, offset: int
) -> list[Rule]:
    assert stored.tables is not None
    names = _Temporary(engine)
    page = names.table("page")
    leaves = stored.tables.leaves
    engine.run("rules/create_page", page=page, leaves=leaves, attributes=attributes, limit=limit, offset=offset)
    box_labels: list[BoxLabels] = []
    for attribute in attributes:
        first = sum(len(face.values) for face in box_labels)
        box_labels.append(create_box_labels(engine, names, attribute, stored.tables, page, first, None))
    rows = engine.query(
        "rules/list_cells",
        page=page,
        cells=[value for face in box_labels for value in face.values],
        box_labels=[face.joined for face in box_labels],
    )
    names.drop(page, *(face.table for face in box_labels))
    return [Rule(int(leaf), int(n), tuple(cells)) for leaf, n, *cells in rows]


def list_replaced(engine: Engine, stored: StoredRules) -> list[tuple[str, int, str]]:
    """The groups that cuts have replaced by their children: attribute, level, label."""
    assert stored.tables is not None
    names = [a.name for a in stored.attributes]
    found: Sequence[tuple[Any, ...]] = engine.query("rules/list_replaced", segments=stored.tables.segments)
    return [(names[int(number)], int(level), str(label)) for number, level, label in found]
