"""Growth by gain on a sample: the splits of the sampled nodes that gain most, of those that the tests find allowable.

Source: LeFevre, DeWitt, TR 1590, section 3. Nodes where no split gains enough are handed on to medians on the same
sample. Those with too few sampled rows to tell, and those whose best split may not be allowable, are left to growth by
gain on all their rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from sqlanon.algorithms.tree.allowable import ModelsOfChildren
from sqlanon.algorithms.tree.task import Branch
from sqlanon.encoding.axes import carried
from sqlanon.methods.partitioning.gain.criteria import Criterion
from sqlanon.methods.partitioning.gain.gain import GainGrowth, Level
from sqlanon.methods.partitioning.gain.scanning import Least, Scanned
from sqlanon.methods.partitioning.sampling.hypothesis import Confidence, Hypotheses
from sqlanon.sql import Expression, Relation, macro


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
