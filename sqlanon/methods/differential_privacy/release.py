"""Releases of noisy counts: the cells of a public cut, each with its labels and a count that noise was added to."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.public_domain import Node
from sqlanon.policy.differential_privacy import COUNT
from sqlanon.sql import Identifier, Relation
from sqlanon.staging.staging import StagedTable
from sqlanon.work.publish import guard_staging
from sqlanon.work.workspace import Workspace

_MOST_COPIES = 1_000_000  # of a cell that one line stands for: Spark makes an array of them
Cut = tuple[tuple[Node, ...], ...]
"""The groups that each attribute is shown by, in the order of their places."""


def cells_of(cut: Cut) -> int:
    """Count the combinations of groups."""
    return math.prod(map(len, cut))


def strides_of(sizes: Sequence[int]) -> list[int]:
    """Return by how many cells neighbouring groups of each attribute are apart; the last one varies fastest."""
    return [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]


@dataclass(frozen=True)
class NoisyCounts:
    """The cells of a public cut, numbered in the order of their groups, each with its noisy count.

    cut: of the attributes and, as the last one, the classes of the target where there is one.
    counts: (cell, noisy count) in the order of the cells: of all cells, or of those that reach the threshold.
    """

    plan: PrivatePlan
    cut: Cut
    counts: Sequence[tuple[int, int]]
    threshold: int | None = None

    @property
    def cells(self) -> int:
        """Count the cells, released or not."""
        return cells_of(self.cut)

    @property
    def rows(self) -> int:
        """Count the rows of the release."""
        return len(self.counts) if not self._shows_rows else sum(max(0, count) for _, count in self.counts)

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """List the labels of each column, in the order of their places."""
        return {
            name: tuple(node.label for node in nodes) for name, nodes in zip(self.plan.shown, self.cut, strict=True)
        }

    @property
    def _shows_rows(self) -> bool:
        return self.plan.algorithm.as_ == "rows"

    def _lines(self) -> Iterator[tuple[int, int]]:
        """Yield the cells that rows are made of, each with a part of its count, so that no part is large."""
        for cell, count in self.counts:
            for first in range(0, count, _MOST_COPIES):
                yield cell, min(_MOST_COPIES, count - first)

    @contextlib.contextmanager
    def stage(self, engine: Engine, workspace: Workspace, *, replace: bool) -> Iterator[StagedTable]:
        """Write the release beside its place, in the order of its cells."""
        final = workspace.staging(self.plan.release, engine)
        counts, labels = workspace.table("counts"), workspace.table("labels")
        sizes = [len(nodes) for nodes in self.cut]
        with engine.transaction():
            load_counts(engine, counts, list(self._lines()) if self._shows_rows else self.counts)
            load_labels(engine, labels, list(self.labels.values()))
            engine.run(
                "methods/differential_privacy/stage_counts",
                staging=final,
                counts=counts,
                labels=labels,
                count=Identifier(COUNT),
                as_rows=self._shows_rows,
                attributes=[
                    {"number": number, "name": Identifier(name), "stride": stride, "size": size}
                    for number, (name, stride, size) in enumerate(
                        zip(self.plan.shown, strides_of(sizes), sizes, strict=True)
                    )
                ],
            )
            grants = guard_staging(engine, final)
        workspace.drop(counts, labels)
        yield StagedTable(final, engine, final, self.plan.release, grants, replace)


def load_counts(engine: Engine, table: Relation, counts: Sequence[tuple[int, int]]) -> None:
    """Write down the noisy count of each cell, by its number."""
    engine.run("methods/differential_privacy/create_counts", counts=table)
    engine.load(table, ["cell", "n"], counts)
    engine.analyze(table)


def load_labels(engine: Engine, table: Relation, labels: Sequence[Sequence[str]]) -> None:
    """Write down the labels of each column."""
    engine.run("methods/differential_privacy/create_labels", labels=table)
    rows: list[tuple[Any, ...]] = [
        (attribute, number, label) for attribute, shown in enumerate(labels) for number, label in enumerate(shown)
    ]
    engine.load(table, ["attribute", "number", "label"], rows)
    engine.analyze(table)
