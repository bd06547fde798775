"""Rothko-S: a tree grown on samples, checked and pruned on all rows, finished by Rothko-T.

Source: LeFevre, DeWitt, TR 1590, section 3. An episode draws a sample of every node that is larger than one, grows the
trees of all these nodes together, sends all their rows through, and prunes; its leaves that are still larger than a
sample are the nodes of the next episode. A node that no longer is, or that no split of its sample would stand in, is
finished on all its rows. What a sample says decides only where is cut: that every class satisfies the models is judged
on all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup

from sqlanon.algorithms.tree.forest import grow_forest
from sqlanon.algorithms.tree.growth import Frontier, Growth, GrowthProgress
from sqlanon.algorithms.tree.partitioning import build_task
from sqlanon.algorithms.tree.task import Branch, Task
from sqlanon.encoding.axes import carried
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples, expand
from sqlanon.engines.base import Engine
from sqlanon.methods.partitioning import mondrian
from sqlanon.methods.partitioning.gain.criteria import Criterion
from sqlanon.methods.partitioning.gain.gain import GainGrowth
from sqlanon.methods.partitioning.policy import RothkoS
from sqlanon.methods.partitioning.sampling.draw import Draw, draw
from sqlanon.methods.partitioning.sampling.hypothesis import Confidence
from sqlanon.methods.partitioning.sampling.repartition import Repartition, SampleTree, Settled, build_tree
from sqlanon.methods.partitioning.sampling.sampled import Care, Sample, SampledGrowth
from sqlanon.models.base import PrivacyModel
from sqlanon.results.search_facts import SampledTreeFacts, TreeFacts
from sqlanon.sql import Expression, Relation, macro
from sqlanon.staging.partition import Partition
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class SamplingProgress:
    """A round of growth on the samples of an episode."""

    episode: int
    growth: GrowthProgress

    @property
    def text(self) -> str:
        """The progress in a few words."""
        return f"sample {self.episode}: {self.growth.text}"


@dataclass
class Counters:
    """Counters of the samples.

    scans: reads of rows in the episodes, in units of the whole table.
    """

    samplings: int = 0
    sampled: int = 0
    nodes: int = 0
    pruned: int = 0
    scans: float = 0.0

    def added_to(self, facts: TreeFacts) -> SampledTreeFacts:
        """The facts of a tree that samples were taken for."""
        return SampledTreeFacts(**vars(facts), **{**vars(self), "scans": round(self.scans, 4)})


@dataclass(frozen=True)
class Nodes:
    """The nodes of an episode: `(root, population)`, how many, and their rows `(node, p0, …[, w])`, `total` of them."""

    table: Relation | Expression
    count: int
    rows: Relation | Expression
    total: int


@dataclass(frozen=True)
class TreePart:
    """The leaves and nodes that an episode has settled, and those leaves that the next one samples again, if any.

    median_only: the leaves that are cut at medians from now on; None where all are.
    """

    settled: Settled
    tree: Relation
    median_only: Relation | None
    next_roots: Relation | None


def search(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    tuples: Tuples | None,
    models: Sequence[PrivacyModel],
    algorithm: RothkoS,
    report: Callable[[GrowthProgress | SamplingProgress], None],
    confidence: Confidence | None = None,
) -> Partition:
    """Partition the coded table, over its distinct tuples where these are given.

    confidence: how sure a split must be, in place of the algorithm's alpha: the paper's figure 28 has a naive check.

    Raises ProtectionError, before any split, when no release can meet the models.
    """
    facts = mondrian.facts_of_tree(algorithm, models)
    if coded.source_rows <= algorithm.sample:
        whole = mondrian.search(engine, workspace, coded, tuples, models, algorithm.on_all_rows, report)
        return replace(whole, facts=Counters().added_to(facts))
    task = build_task(engine, workspace, coded, models)
    task = task if tuples is None else task.over_tuples()
    table = coded.rows if tuples is None else tuples.table
    branch, sure = Branch(engine, workspace, task), confidence or Confidence(algorithm.alpha)
    criterion = mondrian.criterion_of(engine, workspace, coded, algorithm) if algorithm.target is not None else None
    sampling = Sampling(branch, algorithm, sure, report, criterion)
    sampling.run(table)
    grown = grow_forest(engine, workspace, task, sampling.hand_on, report, records=True)
    done = grown.done if tuples is None else expand(coded, tuples, grown.done)
    facts = sampling.counters.added_to(facts)
    return Partition(task.axes, grown.leaves, done, grown.rounds, tree=grown.tree, facts=facts)


@dataclass
class Sampling:
    """The episodes of a search over all rows of `branch`; `first` is the number of the next node.

    criterion: how splits are chosen; None cuts at medians.
    """

    branch: Branch
    algorithm: RothkoS
    confidence: Confidence
    report: Callable[[SamplingProgress], None]
    criterion: Criterion | None = None
    counters: Counters = field(default_factory=Counters)
    parts: list[TreePart] = field(default_factory=list)
    first: int = 0

    @property
    def task(self) -> Task:
        return self.branch.task

    @property
    def fewest(self) -> int:
        return max(model.least_rows for model in self.task.models)

    def run(self, table: Relation, episodes: int | None = None) -> None:
        """Sample until no node is left that is larger than a sample and can be split on one.

        episodes: stop after so many, to look at the counters; what is left can't be handed on then.
        """
        total = self.task.table_rows
        rows = macro("tree.in_root", table, carried("c", self.task.word_columns))
        nodes: Nodes | None = Nodes(macro("sampling.root", total), 1, rows, total)
        while nodes is not None and len(self.parts) != episodes:
            nodes = self._sample(nodes)

    def hand_on(self, trunk: Growth, report: Callable[[GrowthProgress], None]) -> Frontier:
        """The frontier from which Rothko-T finishes all leaves; their parents make up the round before."""
        ranges, splits = trunk.branch.table("ranges"), trunk.branch.table("splits", 1)
        parts = [{"settled": part.settled.ranges, "next_roots": part.next_roots} for part in self.parts]
        engine = self.branch.engine
        self.branch.decide("methods/partitioning/sampling/decide/collect_ranges", ranges=ranges, parts=parts)
        self.branch.decide(
            "methods/partitioning/sampling/decide/record_tree",
            tree=trunk.tree,
            parts=[part.tree for part in self.parts],
        )
        if self.criterion is not None:
            return self._resume_by_gain(self.criterion, trunk, ranges, report)
        self.branch.decide(
            "methods/partitioning/sampling/decide/seed_leaves", splits=splits, ranges=ranges, bits=self.task.bits
        )
        engine.analyze(ranges, splits)
        rows, consumed = self._consumed_rows()
        first_leaf = self.first << self.task.bits
        return Frontier(rows, splits, (*consumed, splits), self.first, 1, next_leaf=first_leaf, ranges=ranges)

    def _consumed_rows(self) -> tuple[Expression, list[Relation]]:
        """The rows of all that is settled, and the tables that nobody needs once they have been sent on."""
        rows = [rows for part in self.parts for rows in part.settled.rows]
        tables = [table for table in rows if isinstance(table, Relation)]
        return self._union(rows), [*tables, *(part.tree for part in self.parts)]

    def _resume_by_gain(
        self, criterion: Criterion, trunk: Growth, ranges: Relation, report: Callable[[GrowthProgress], None]
    ) -> Frontier:
        """All leaves that are not cut at medians are split by gain, as far as that goes."""
        median_only, parts = trunk.branch.table("median_only"), [part.median_only for part in self.parts]
        self.branch.decide(
            "methods/partitioning/sampling/decide/join_median_only", median_only=median_only, parts=parts
        )
        self.branch.engine.analyze(ranges, median_only)
        rows, consumed = self._consumed_rows()
        gain = GainGrowth(trunk.branch, criterion, self.algorithm.bins)
        level = gain.resume(rows, ranges, median_only, self.first)
        self.branch.workspace.drop(*consumed, ranges, median_only, criterion.target.responses)
        return gain.grow_on(level, report)

    def _sample(self, nodes: Nodes) -> Nodes | None:
        """One episode; the nodes of the next, if there are any."""
        counters, number = self.counters, len(self.parts)
        sample, scans = self._draw(nodes, number)
        sample_nodes = self._grow(sample, number, nodes.total)
        tree = build_tree(self._sampled(), sample_nodes, self.first, nodes.count)
        settled = Repartition(self.branch, tree, nodes.rows, number).carry_out()
        median_only = None if self.criterion is None else self._list_median_only(tree, settled, number)
        sampled = self.parts[-1].next_roots if self.parts else None
        followed = follow_episode(self.branch, tree, settled, sampled, number)
        self.branch.workspace.drop(
            *sample_nodes, sample.roots, tree.routes, *([settled.leaf_of_row] if settled.leaf_of_row else [])
        )
        first_child = (self.first + nodes.count) << self.task.bits
        self.first = tree.end
        counters.samplings += 1
        counters.sampled += sample.size * sample.count
        counters.nodes += tree.nodes
        counters.pruned += settled.pruned
        following = self._next_nodes(TreePart(settled, followed, median_only, None), first_child, number)
        counters.scans += (scans + settled.scans + (following is not None)) * nodes.total / self.task.table_rows
        return following

    def _sampled(self) -> Branch:
        """The branch of work on samples: rows that stand for themselves."""
        return replace(self.branch, task=replace(self.task, weighted=False), name="_s")

    def _draw(self, nodes: Nodes, number: int) -> tuple[Sample, int]:
        size = self.algorithm.sample
        what = Draw(nodes.table, nodes.rows, size, f"{self.algorithm.seed}:{number}")
        roots, table, scans = draw(self._sampled(), what, weighted=self.task.weighted)
        return Sample(roots, nodes.count, table, size), scans

    def _grow(self, sample: Sample, number: int, total: int) -> list[Relation]:
        """Grow the samples' trees; no sampled node has more than `total` rows."""
        sampled = self._sampled()
        least = self.confidence.least_sampled(self.fewest, sample.size, total, 2 * len(self.task.models))
        smallest = max(2 * least, math.ceil(self.algorithm.exact_below * sample.size / total))
        branch = replace(sampled, task=replace(sampled.task, smallest=smallest))
        growth = SampledGrowth(branch, sample, Care(self.confidence, self.fewest, self.algorithm.exact_below))

        def report(progress: GrowthProgress) -> None:
            self.report(SamplingProgress(number + 1, progress))

        if self.criterion is None:
            frontier = growth.start()
        else:
            frontier = growth.start_by_gain(self.criterion, self.algorithm.bins, report)
        growth.grow(frontier, report)
        self.branch.workspace.drop(*growth.consumed)
        return growth.sample_nodes

    def _list_median_only(self, tree: SampleTree, settled: Settled, number: int) -> Relation:
        median_only, routes = self.branch.table("median_only", number), tree.routes
        values = {"routes": routes, "settled": settled.ranges, "unit": 1 << self.task.bits, "nested": self.task.nested}
        self.branch.decide("methods/partitioning/sampling/decide/list_median_only", median_only=median_only, **values)
        return median_only

    def _next_nodes(self, part: TreePart, first_child: int, number: int) -> Nodes | None:
        settled = part.settled
        engine, roots = self.branch.engine, self.branch.table("next_roots", number)
        sample = self.algorithm.sample
        values = {
            "settled": settled.ranges,
            "median_only": part.median_only,
            "sample": sample,
            "first_child": first_child,
        }
        self.branch.decide("methods/partitioning/sampling/decide/create_next_roots", roots=roots, **values)
        count, total = self.branch.ask("methods/partitioning/sampling/decide/count_settled", roots=roots)
        self.parts.append(replace(part, next_roots=roots if count else None))
        if not count:
            return None
        rows, words = self.branch.table("next_rows", number), carried("r", self.task.word_columns)
        self.branch.scan(
            "methods/partitioning/sampling/scan/take_rows",
            next_rows=rows,
            rows=self._union(settled.rows),
            roots=roots,
            words=words,
        )
        engine.analyze(rows, roots)
        return Nodes(Markup(str(roots)), int(count), rows, int(total))

    def _union(self, tables: Sequence[Relation | Expression]) -> Expression:
        return macro("tree.of_all", tables, carried("u", self.task.word_columns))


def follow_episode(
    branch: Branch, tree: SampleTree, settled: Settled, sampled: Relation | None, number: int
) -> Relation:
    """The nodes of an episode's tree that are left, with the numbers that they have, as the partition tree has them.

    sampled: `(root, node, …)`, the nodes of the episode before that this one has sampled; None for the whole table.
    """
    followed = branch.table("followed", number)
    branch.decide(
        "methods/partitioning/sampling/decide/follow_tree",
        tree=followed,
        routes=tree.routes,
        ranges=settled.ranges,
        leaf_of_row=settled.leaf_of_row,
        sampled=sampled,
        first=tree.first,
        bits=branch.task.bits,
        unit=1 << branch.task.bits,
        nested=branch.task.nested,
        axes=branch.task.axes,
    )
    return followed
