"""Growth on a sample: the same rounds, but splits are judged by hypothesis tests; the tree is kept, not its leaves."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.partition.growth import Frontier, Growth
from sqlanon.partition.hypothesis import Confidence, Hypotheses
from sqlanon.partition.judging import judge
from sqlanon.partition.medians import Candidates
from sqlanon.partition.task import Branch
from sqlanon.sql import Relation


@dataclass(frozen=True)
class Sample:
    """The sampled nodes, `(root, population, …)`, how many they are, and their rows `(node, p0, …)`, `size` of each."""

    roots: Relation
    count: int
    table: Relation
    size: int


class SampledGrowth(Growth):
    """Grows the trees of all sampled nodes at once; `twigs` are its nodes, in a table for each round.

    A node's place is its number among all nodes of all rounds; one that is tried again keeps it.
    """

    def __init__(self, branch: Branch, sample: Sample, confidence: Confidence, fewest: int) -> None:
        super().__init__(branch, records=False)
        self.sample = sample
        self.confidence = confidence
        self.fewest = fewest
        self.twigs: list[Relation] = []

    @property
    def searches_thresholds(self) -> bool:
        """Not on a sample: what medians leave together is finished on all rows."""
        return False

    @property
    def quantiles(self) -> Relation:
        return self.branch.table("quantiles")

    @property
    def spent(self) -> tuple[Relation, ...]:
        """The tables that nobody needs once the trees are grown."""
        return self.quantiles, self._parents(0)

    def start(self) -> Frontier:
        """The frontier before the first round: every sampled node is whole."""
        splits, size = self.branch.table("splits", 0), self.sample.size
        engine, roots = self.branch.engine, self.sample.roots
        engine.run("sampling/seed_splits", splits=splits, roots=roots, sample=size)
        engine.run("sampling/seed_twigs", twigs=self._parents(0), roots=roots)
        most = 1 << self.task.bits
        pairs = [(n, self.confidence.quantile(n * len(self.task.models))) for n in range(2, max(most, 2) + 1)]
        pairs = pairs if self.task.nested else pairs[:1]
        engine.run("sampling/create_quantiles", quantiles=self.quantiles, pairs=pairs)
        rows = self.sample.table
        return Frontier(rows, splits, (rows, splits), self.sample.count)

    def _parents(self, round_: int) -> Relation:
        return self.branch.table("twigs", round_)

    def _judge(self, frontier: Frontier, candidates: Candidates, splits: Relation) -> list[Relation]:
        parents = self._parents(frontier.round)
        hypotheses = Hypotheses(self.confidence, self.sample.roots, parents, self.quantiles, self.fewest)
        used = judge(self.branch, frontier.rows, candidates, splits, by=hypotheses)
        twigs = self._parents(frontier.round + 1)
        self.branch.engine.run(
            "sampling/follow_nodes",
            twigs=twigs,
            parents=parents,
            ranges=self.branch.table("ranges"),
            splits=splits,
            masks=self.task.masks,
            bits=self.task.bits,
            first_place=frontier.next_leaf,
            next_place=self._next_leaf(frontier),
        )
        self.twigs.append(twigs)
        return used

    def _retire(self, frontier: Frontier, ranges: Relation, splits: Relation) -> None:
        """Nothing becomes of a sample's rows."""
