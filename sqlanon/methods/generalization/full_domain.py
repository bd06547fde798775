"""Full-domain generalization: the searches over the lattice of generalizations."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.encoding.distinct_tuples import OFTEN_READ_SHARE
from sqlanon.methods.generalization.lattice import search as lattice_search
from sqlanon.methods.generalization.lattice.climbing import climb
from sqlanon.methods.generalization.lattice.options import full_domain, node_of
from sqlanon.methods.generalization.lattice.remainder import recode_in_passes
from sqlanon.policy import AlgorithmParameters
from sqlanon.releases.earlier_groups import EarlierGroups
from sqlanon.releases.generalized import Levels
from sqlanon.releases.recoding import Generalization, recode_node
from sqlanon.releases.rules.store_rules import StoredRules


class FullDomainGeneralization(Algorithm[Generalization]):
    """One level of its hierarchy for every column; docs/algorithms.md says which search is for what."""

    worth = OFTEN_READ_SHARE
    reads_uncoded: ClassVar[bool] = False

    def by_rules(self, stored: StoredRules) -> StoredLevels:
        return StoredLevels(self.parameters, stored)

    def shortened(self, request: SearchRequest) -> SearchRequest:
        """Look at the four most general nodes alone, in place of those that the policy allows or names."""
        algorithm = full_domain(request.policy)
        lattice = lattice_search.lattice_of(request.coded, algorithm.model_copy(update={"limits": {}}))
        names, top = lattice.names, lattice.top
        bottom = tuple(max(0, high - 1) if place < 2 else high for place, high in enumerate(top))
        limits = dict(zip(names, zip(bottom, top, strict=True), strict=True))
        levels = None if request.options.levels is None else dict(zip(names, top, strict=True))
        policy = request.policy.model_copy(update={"algorithm": algorithm.model_copy(update={"limits": limits})})
        options = replace(request.options, levels=levels, any_size=True)
        return replace(request, policy=policy, options=options)

    def search(self, request: SearchRequest) -> Generalization:
        return lattice_search.search(lattice_search.lattice_problem(request), request.policy, request.options)

    def coarsen(
        self, request: SearchRequest, decision: Generalization, earlier: EarlierGroups
    ) -> Generalization | None:
        anew = replace(request, tuples=None, options=SearchOptions(any_size=True))  # the search has dropped its tuples
        return climb(lattice_search.lattice_problem(anew), decision, earlier.hold_partition)

    def release(self, request: SearchRequest, decision: Generalization) -> Levels:
        return Levels.create(request.engine, request.workspace, request.coded, decision)


class StoredLevels(FullDomainGeneralization):
    """The generalization at the levels that stored rules name, in place of a search."""

    def __init__(self, parameters: AlgorithmParameters, stored: StoredRules) -> None:
        super().__init__(parameters)
        self._stored = stored

    def search(self, request: SearchRequest) -> Generalization:
        return recode_at_levels(request, self._stored)


def recode_at_levels(request: SearchRequest, stored: StoredRules) -> Generalization:
    """Generalize to the levels that stored rules name, whatever has to be suppressed; nothing is searched."""
    problem, policy = (
        lattice_search.lattice_problem(replace(request, options=SearchOptions(any_size=True))),
        request.policy,
    )
    nodes = [node_of(problem.lattice, levels) for levels in stored.content["passes"]]
    completes = policy.remainder == "recode" and policy.judges_stars
    if len(nodes) > 1 or completes:
        return recode_in_passes(problem, full_domain(policy), nodes, judges_stars=completes)
    return recode_node(problem.sets, nodes[0])
