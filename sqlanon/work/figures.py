"""Progress of a search as named numbers, for programs."""

from __future__ import annotations

import dataclasses
from typing import Any

from sqlanon.work.journal import Progress

_NAMES = {"active_rows": "active", "active_nodes": "nodes", "leaves": "final"}


def figures(progress: Progress) -> dict[str, int | float]:
    """The numbers of a progress, in order; those that it doesn't know yet are left out.

    Of a tree `round`, `active` (rows), `nodes`, `final` (classes), beside them the `episode` of a sample; of a lattice
    `checked`, `open`, `best`, `bound`; of a specialization `done`, `tried`, `open`; of refinement
    `refined`, `of`, `clusters`; of a stream `round`, `left`, `groups`.
    """
    assert dataclasses.is_dataclass(progress)
    numbers: dict[str, Any] = {}
    for field in dataclasses.fields(progress):
        value = getattr(progress, field.name)
        if dataclasses.is_dataclass(value):
            numbers |= figures(value)
        elif value is not None:
            numbers[_NAMES.get(field.name, field.name)] = value
    return numbers
