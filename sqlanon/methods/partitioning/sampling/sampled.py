"""Growth on a sample: the same rounds, but splits are judged by hypothesis tests; the tree is kept, not its leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from sqlanon.algorithms.tree.allowable import ModelsOfChildren, record_allowable
from sqlanon.algorithms.tree.growth import Frontier, Growth, GrowthProgress
from sqlanon.algorithms.tree.medians import Candidates, attributes_of, list_attributes
from sqlanon.algorithms.tree.task import Branch
from sqlanon.encoding.axes import carried
from sqlanon.methods.partitioning.gain.criteria import Criterion
from sqlanon.methods.partitioning.gain.gain import GainGrowth, Level
from sqlanon.methods.partitioning.gain.scanning import Least, Scanned
from sqlanon.methods.partitioning.sampling.hypothesis import Confidence, Hypotheses
from sqlanon.sql import Expression, Relation, macro


@dataclass(frozen=True)
class Sample:
    """The sampled nodes, `(root, population, …)`, how many they are, and their rows `(node, p0, …)`, `size` of each."""

    roots: Relation
    count: int
    table: Relation
    size: int


@dataclass(frozen=True)
class Care:
    """The requirements on splits on a sample.

    fewest: rows that each child must have in the whole node.
    exact_below: nodes of fewer rows are not split on a sample.
    """

    confidence: Confidence
    fewest: int
    exact_below: int


class SampledGrowth(Growth):
    """Grows the trees of all sampled nodes at once; `sample_nodes` are its nodes, in a table for each round.

    A node's place is its number among all nodes of all rounds; one that is tried again keeps it. Hardly a median of a
    sample fails before the last rounds: all attributes are tried at once only when fewer rows are left than elsewhere.
    """

    cells_at_once = 1_000_000

    def __init__(self, branch: Branch, sample: Sample, care: Care) -> None:
        super().__init__(branch, records=False)
        self.sample = sample
        self.care = care
        self.sample_nodes: list[Relation] = []
        self._parents = branch.table("sample_nodes", 0)
        self._resumed: tuple[Relation, ...] = ()

    @property
    def searches_thresholds(self) -> bool:
        """Not on a sample: what medians leave together is finished on all rows."""
        return False

    @property
    def min_counts(self) -> Relation:
        """The rows that the children of each sampled node must have in the sample."""
        return self.branch.table("min_counts")

    @property
    def consumed(self) -> tuple[Relation, ...]:
        """The tables that nobody needs once the trees are grown."""
        return self.min_counts, self.branch.table("sample_nodes", 0), attributes_of(self.branch), *self._resumed

    def start(self) -> Frontier:
        """The frontier before the first round: every sampled node is whole."""
        self._prepare_tests()
        splits, rows = self.branch.table("splits", 0), self.sample.table
        values = {"roots": self.sample.roots, "sample": self.sample.size}
        self.branch.decide("methods/partitioning/sampling/decide/seed_splits", splits=splits, **values)
        return Frontier(rows, splits, (rows, splits), self.sample.count)

    def start_by_gain(
        self, criterion: Criterion, bins: int | Literal["exact"], report: Callable[[GrowthProgress], None]
    ) -> Frontier:
        """The frontier after growth by gain: what is to be cut at medians."""
        self._prepare_tests()
        first, confidence = (self._parents, self.sample.count), self.care.confidence
        gain = SampledGainGrowth(self.branch, criterion, bins, confidence, self.min_counts, first)
        frontier = gain.grow_on(gain.seed_sample(self.sample.table), report)
        self.branch.workspace.drop(self.sample.table)
        self.sample_nodes += gain.sample_nodes[1:]
        self._parents = gain.resumed()
        self._resumed = (self._parents,)
        self.branch.engine.analyze(self._parents)
        return frontier

    def _prepare_tests(self) -> None:
        engine, roots, care = self.branch.engine, self.sample.roots, self.care
        list_attributes(self.branch)
        self.branch.decide(
            "methods/partitioning/sampling/decide/seed_sample_nodes", sample_nodes=self._parents, roots=roots
        )
        children = 1 << self.task.bits if self.task.nested else 2
        self.branch.decide(
            "methods/partitioning/sampling/decide/create_min_counts",
            min_counts=self.min_counts,
            roots=roots,
            sample=self.sample.size,
            k=care.fewest,
            tested=care.confidence.alpha is not None,
            exact_below=care.exact_below,
            quantiles=care.confidence.quantiles(children, len(self.task.models)),
        )
        engine.analyze(self.min_counts)

    def _record_allowable(self, frontier: Frontier, candidates: Candidates, splits: Relation) -> list[Relation]:
        hypotheses = Hypotheses(self.care.confidence, self.min_counts, self._parents)
        used = record_allowable(self.branch, frontier.rows, candidates, splits, by=hypotheses)
        sample_nodes = self.branch.table("sample_nodes", frontier.round + 1)
        self.branch.decide(
            "methods/partitioning/sampling/decide/follow_nodes",
            sample_nodes=sample_nodes,
            parents=self._parents,
            ranges=self.branch.table("ranges"),
            splits=splits,
            masks=self.task.masks,
            bits=self.task.bits,
            first_place=frontier.next_leaf,
            next_place=self._next_leaf(frontier),
        )
        self.sample_nodes.append(sample_nodes)
        self._parents = sample_nodes
        return used

    def _retire(self, frontier: Frontier, ranges: Relation, splits: Relation) -> None:
        """Nothing becomes of a sample's rows."""


class SampledGainGrowth(GainGrowth):
    """Grows the trees of all sampled nodes at once, and keeps their nodes in `sample_nodes`, a table for each round.

    min_counts: what the children of a sampled node must have in the sample.
    roots: the sampled nodes, as if a split had made each of them, and how many they are.
    """

    def __init__(
        self,
        branch: Branch,
        criterion: Criterion,
        bins: int | Literal["exact"],
        confidence: Confidence,
        min_counts: Relation,
        roots: tuple[Relation, int],
    ) -> None:
        super().__init__(branch, criterion, bins)
        self.confidence, self.min_counts = confidence, min_counts
        self.sample_nodes = [roots[0]]
        self.roots = roots[1]
        self.scanner.least = Least(self.scanner.least.fewest, min_counts)

    @property
    def _halves(self) -> Expression:
        """The rows that two children must have, and the fewest sampled rows of a node that is checked by its gain."""
        return macro("sampling.halves", self.min_counts)

    def seed_sample(self, sample: Relation) -> Level:
        """The sampled nodes, which are left as they are."""
        self.prepare()
        columns = carried("c", self.plain.word_columns)
        level = self.seed(macro("tree.in_nodes", sample, columns))
        return replace(level, parents=self.roots)

    def resumed(self) -> Relation:
        """The nodes that are cut at medians from now on, as parents of the first round that does."""
        sample_nodes = self.branch.table("resumed_nodes")
        self.branch.decide(
            "methods/partitioning/sampling/decide/resume_sample_nodes",
            sample_nodes=sample_nodes,
            parts=self.sample_nodes[1:],
            for_median=self.for_median,
        )
        return sample_nodes

    def _choose_nodes(self, ranges: Relation | Expression) -> tuple[Relation, int]:
        nodes = self.sample_nodes[-1]
        judged = macro("sampling.nodes_for_gain", ranges, nodes, self.plain.bits, self._halves)
        return super()._choose_nodes(judged)

    def _list_candidate_splits(self, candidate_splits: Relation, candidates: Relation) -> ModelsOfChildren:
        tables = {"candidate_splits": candidate_splits, "candidates": candidates, "min_counts": self.min_counts}
        groups = self.branch.table("whole_groups")
        self.branch.decide(
            "methods/partitioning/sampling/decide/list_candidate_splits",
            groups=groups,
            nested=self.plain.nested,
            **tables,
        )
        return Hypotheses(self.confidence, self.min_counts, self.sample_nodes[-1])

    def _search_alternative_splits(
        self, level: Level, scanned: Scanned, candidates: Relation, violating_splits: Relation | None
    ) -> Relation | None:
        """None: a node whose best split the tests refuse is left to growth by gain on all its rows."""

    def _remember(self, level: Level, splits: Relation) -> None:
        """The tree of a sample is written down when it has been pruned."""

    def _follow(self, level: Level, ranges: Relation, splits: Relation | None) -> None:
        sample_nodes = self.branch.table("sample_nodes", level.round + 1)
        self.branch.decide(
            "methods/partitioning/sampling/decide/follow_gains",
            sample_nodes=sample_nodes,
            parents=self.sample_nodes[-1],
            ranges=ranges,
            splits=splits,
            candidates=self.branch.table("gain_candidates"),
            smallest=self._halves,
            masks=self.plain.masks,
            bits=self.plain.bits,
            first_place=level.numbers.nodes,
            next_place=self._next_number(level),
        )
        self.sample_nodes.append(sample_nodes)
