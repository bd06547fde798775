"""The search of a dry run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlanon.algorithms import SearchRequest
from sqlanon.algorithms.lattice.options import SearchOptions, full_domain
from sqlanon.algorithms.lattice.search import lattice_of
from sqlanon.policy import Policy, Recodes
from sqlanon.runs.dry_run.answers import FakeAnswers
from sqlanon.runs.execution import ClassRun, Encoded
from sqlanon.runs.searching import Search

_REPEATS = 2  # statements of one template that a search over a lattice shows


class ShortSearch(Search):
    """The policy's search; of a lattice it looks at the four most general nodes alone, as heights are made up."""

    def __init__(self, policy: Policy, search_options: SearchOptions, answers: FakeAnswers) -> None:
        super().__init__(policy.algorithm, search_options)
        self._answers = answers

    def _search(self, run: ClassRun, request: SearchRequest, encoded: Encoded) -> Any:
        if request.policy.algorithm.recodes is Recodes.LEVELS:
            request = self._of_top(request)
            self._answers.script.repeats = _REPEATS
        decision = super()._search(run, request, encoded)
        self._answers.script.repeats = None
        self._answers.omitted = decision.omitted
        return decision

    def _of_top(self, request: SearchRequest) -> SearchRequest:
        """Ask for a search within limits, in place of those of the policy; of a node that is named, of the topmost."""
        algorithm = full_domain(request.policy)
        lattice = lattice_of(request.coded, algorithm.model_copy(update={"limits": {}}))
        named, top = lattice.names, lattice.top
        self._answers.bottom = tuple(max(0, high - 1) if place < 2 else high for place, high in enumerate(top))
        limits = dict(zip(named, zip(self._answers.bottom, top, strict=True), strict=True))
        levels = None if self.search_options.levels is None else dict(zip(named, top, strict=True))
        policy = request.policy.model_copy(update={"algorithm": algorithm.model_copy(update={"limits": limits})})
        return replace(request, policy=policy, options=replace(self.search_options, levels=levels, any_size=True))
