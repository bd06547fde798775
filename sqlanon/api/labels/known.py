"""Columns of a release that show labels to compute with, as its run knows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlanon.api.labels.parsing import LabelKind
from sqlanon.policy import Policy, Recodes, Show
from sqlanon.results.run_result import QuasiIdentifier, RunResult

_LABELLED = (Recodes.REGIONS, Recodes.LEVELS, Recodes.CUTS, Recodes.INTERVALS)
_GROUPED = (None, "intervals", "date")  # kinds of hierarchies whose labels name the ends of their groups
_TYPES: tuple[tuple[LabelKind, re.Pattern[str]], ...] = (
    ("timestamp", re.compile(r"timestamp")),
    ("date", re.compile(r"date$")),
    ("number", re.compile(r"u?(tiny|small|big|huge)?int|integer|double|real|float|numeric|decimal")),
    ("text", re.compile(r"varchar|text|char")),
)


def labels_of(result: RunResult, policy: Policy) -> dict[str, LabelKind]:
    """Name the columns of a release whose labels `read_labels` reads, each with the kind of its labels.

    Columns of masks, of a csv or mapping, of single cells and of centres are not among them.
    """
    if policy.algorithm.recodes not in _LABELLED:
        return {}
    return dict(_labelled(result.quasi_identifiers or ()))


def _labelled(columns: Sequence[QuasiIdentifier]) -> Iterator[tuple[str, LabelKind]]:
    for column in columns:
        kind = next((kind for kind, pattern in _TYPES if pattern.match(column.type.lower())), None)
        if kind is not None and column.show == Show.LABEL and column.hierarchy in _GROUPED:
            yield column.name, kind
