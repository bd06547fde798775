"""Searches of the figures: a table encoded once, searched in many ways, released never."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.algorithms.tree.forest import grow_forest
from sqlanon.algorithms.tree.growth import Frontier, Growth, GrowthProgress
from sqlanon.algorithms.tree.partitioning import build_task
from sqlanon.algorithms.tree.task import Branch, Task
from sqlanon.encoding.coded_table import CodedTable, encode
from sqlanon.engines.base import Engine
from sqlanon.methods.partitioning.gain.criteria import Criterion
from sqlanon.methods.partitioning.gain.gain import GainGrowth
from sqlanon.methods.partitioning.mondrian import criterion_of
from sqlanon.methods.partitioning.policy import RothkoS, RothkoT
from sqlanon.methods.partitioning.sampling.hypothesis import Confidence
from sqlanon.methods.partitioning.sampling.rothko_s import Sampling
from sqlanon.models.k_anonymity import KAnonymity
from sqlanon.plan.plan import resolve_source
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Relation, Statement
from sqlanon.work.workspace import TemporaryWorkspace


@dataclass(frozen=True)
class Found:
    """A partition: its classes, and how well they tell of the target (bits, or in the target's unit).

    open: whether some class of more rows than a sample may still have an allowable split that no sample vouched for.
    """

    classes: int
    quality: float
    open: bool = False


@dataclass(frozen=True)
class Sampled:
    """Partition by samples alone, and the same one finished on all rows."""

    alone: Found
    finished: Found
    pruned: int


class Searches:
    """Searches of one table under k-anonymity, with splits for one target."""

    def __init__(self, engine: Engine, policy: dict[str, Any], split: dict[str, Any]) -> None:
        self.engine, self.split = engine, split
        self.workspace = TemporaryWorkspace(engine)
        plan = resolve_source(build_policy({**policy, "algorithm": {"name": "rothko-t", **split}}), engine)
        with engine.transaction():
            self.coded: CodedTable = encode(engine, plan, self.workspace)

    def exact(self, k: int) -> Found:
        """Rothko-T."""
        task, criterion = self._pose(k)

        def begin(trunk: Growth, report: Callable[[GrowthProgress], None]) -> Frontier:
            return GainGrowth(trunk.branch, criterion, "exact").grow(self._copied(), report)

        grown = grow_forest(self.engine, self.workspace, task, begin, lambda _progress: None)
        return self._measured(Markup(str(grown.done)))

    def sampled(self, k: int, n: int, seed: int) -> Sampled:
        """Rothko-S with samples of n rows."""
        task, criterion = self._pose(k)
        algorithm = RothkoS(name="rothko-s", sample=n, seed=seed, exact_below=0, **self.split)
        branch = Branch(self.engine, self.workspace, task)
        sampling = Sampling(branch, algorithm, Confidence(0.05), lambda _progress: None, criterion)
        sampling.run(self._copied())
        alone = self._measured(self._settled(sampling), unfinished=max(n, 2 * k - 1))
        grown = grow_forest(self.engine, self.workspace, task, sampling.hand_on, lambda _progress: None)
        return Sampled(alone, self._measured(Markup(str(grown.done))), sampling.counters.pruned)

    def _pose(self, k: int) -> tuple[Task, Criterion]:
        task = build_task(self.engine, self.workspace, self.coded, [KAnonymity(k)])
        algorithm = RothkoT(name="rothko-t", **self.split)
        criterion = criterion_of(self.engine, self.workspace, self.coded, algorithm)
        kept = f"CREATE OR REPLACE TEMP TABLE figure_responses AS SELECT s, y FROM {criterion.target.responses}"
        self.engine.execute(Statement("keep", kept))
        self._field = criterion.target.field
        return task, criterion

    def _copied(self) -> Relation:
        """The coded rows, to be used up."""
        copy = self.workspace.table("figure_rows")
        self.engine.execute(Statement("copy", f"CREATE OR REPLACE TEMP TABLE {copy} AS FROM {self.coded.rows}"))
        return copy

    def _settled(self, sampling: Sampling) -> Markup:
        """The rows of the leaves that no further sample was drawn of."""
        ranges = self.workspace.table("figure_ranges")
        parts = [{"settled": part.settled.ranges, "next_roots": part.next_roots} for part in sampling.parts]
        self.engine.run("methods/partitioning/sampling/decide/collect_ranges", ranges=ranges, parts=parts)
        consumed, _ = sampling._consumed_rows()
        rows = self.engine.traits.renderer().written(consumed)
        words = ", ".join(str(word) for word in self.coded.word_columns)
        leaves = f"(SELECT node FROM {ranges})"
        return Markup(f"(SELECT node AS leaf, {words} FROM {rows} WHERE node IN {leaves})")

    def _measured(self, rows: Markup, unfinished: int | None = None) -> Found:
        numeric = self.split["split"] == "regression"
        query = RMSE if numeric else ENTROPY
        told = f"(r.{self._field.column} & {self._field.mask})"
        values = {"rows": rows, "told": told, "most": unfinished or 0}
        classes, quality, larger = self.engine.fetch_one(Statement("measure", query.format(**values)))
        unit = self._unit() if numeric else 1.0
        return Found(int(classes), float(quality) / unit, bool(unfinished is not None and larger))

    def _unit(self) -> float:
        """Compute the number of the search's units in one unit of the target."""
        name = self._field.attribute.column.name
        (units,) = self.engine.fetch_one(Statement("units", "SELECT max(y) - min(y) FROM figure_responses"))
        (span,) = self.engine.fetch_one(Statement("span", f'SELECT max("{name}") - min("{name}") FROM bench'))
        return float(units) / float(span)


ENTROPY = """
WITH g AS (SELECT r.leaf, {told} AS s, count(*) AS n FROM {rows} AS r GROUP BY ALL),
c AS (SELECT g.*, sum(n) OVER (PARTITION BY leaf) AS total FROM g)
SELECT count(DISTINCT leaf), -sum(n * log2(n / total)) / sum(n), count(*) FILTER (WHERE total > {most}) FROM c
"""
RMSE = """
WITH g AS (
    SELECT r.leaf, count(*) AS n, var_pop(t.y) AS variance
    FROM {rows} AS r JOIN figure_responses AS t ON t.s = {told}
    GROUP BY ALL
)
SELECT count(*), sqrt(sum(n * variance) / sum(n)), count(*) FILTER (WHERE n > {most}) FROM g
"""
