"""Hierarchies that are kept in the catalog: read from a file, checked, and written as a file again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from sqlanon.catalog.records import HierarchyRecord
from sqlanon.engines import connect
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.build import build_hierarchy
from sqlanon.hierarchies.describe import csv_line
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.hierarchies.taxonomy import Line, read_lines
from sqlanon.policy import Hierarchy
from sqlanon.policy.attributes import hierarchy_kinds
from sqlanon.sql import Relation


def read_hierarchy(name: str, path: Path) -> HierarchyRecord:
    """The hierarchy that a file `leaf;level 1;...;*` holds.

    Raises PolicyError for a file that can't be read, that is ragged, or whose levels do not nest.
    """

    def error(what: str) -> PolicyError:
        return PolicyError(f"Hierarchy '{name}': {what}")

    lines = list(read_lines(path, str(path), error))
    built = _build(name, path, lines)
    paths = {line.value: list(line.labels) for line in lines}
    specification = json.dumps({"mapping": paths}, ensure_ascii=False)
    digest = hashlib.sha256(specification.encode()).hexdigest()
    return HierarchyRecord(name, digest, specification, built.height, built.leaves)


def _build(name: str, path: Path, lines: list[Line]) -> HierarchyTable:
    """Build it over its own values, in memory, so that every rule is checked that a run would check."""
    with connect(MEMORY_URL) as engine:
        column, values = Column(name, "VARCHAR", Kind.TEXT), Relation("leaves", "main", "temp")
        engine.run("hierarchies/create_values", values=values)
        engine.load(values, ["value"], [[value] for value in dict.fromkeys(line.value for line in lines)])
        spec = Hierarchy(csv=str(path.resolve()))
        return build_hierarchy(engine, spec, column, values, Relation("imported", "main", "temp"))


def kind_of(record: HierarchyRecord) -> str:
    """Return the kind of a recorded hierarchy: `mapping` for an imported one, or the kind that a policy named."""
    return next((kind for kind in hierarchy_kinds() if kind in json.loads(record.specification)), "?")


def recorded_lines(record: HierarchyRecord) -> Iterator[str]:
    """The lines of a hierarchy of kind `mapping`, as its file held them."""
    for value, labels in json.loads(record.specification)["mapping"].items():
        yield csv_line([value, *([labels] if isinstance(labels, str) else labels)])
