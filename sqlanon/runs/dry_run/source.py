"""The search of a dry run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlanon.algorithms import SearchRequest
from sqlanon.algorithms.lattice.options import SearchOptions
from sqlanon.algorithms.lattice.search import lattice_problem, search
from sqlanon.policy import Policy, Recodes
from sqlanon.releases.recoding import Generalization
from sqlanon.runs.dry_run.answers import FakeAnswers
from sqlanon.runs.execution import Encoded, RunExecution
from sqlanon.runs.source import Search

_REPEATS = 2  # statements of one template that a search over a lattice shows


class ShortSearch(Search):
    """The policy's search; of a lattice it looks at the most general nodes alone, as heights are made up."""

    def __init__(self, policy: Policy, search_options: SearchOptions, answers: FakeAnswers) -> None:
        super().__init__(policy.algorithm, search_options)
        self._answers = answers

    def _search(self, run: RunExecution, request: SearchRequest, encoded: Encoded) -> Any:
        if request.policy.algorithm.recodes is not Recodes.LEVELS:
            decision = super()._search(run, request, encoded)
        else:
            self._answers.script.repeats = _REPEATS
            decision = self._search_top(request)
            self._answers.script.repeats = None
        self._answers.omitted = decision.omitted
        return decision

    def _search_top(self, request: SearchRequest) -> Generalization:
        algorithm = request.policy.algorithm.model_copy(update={"limits": {}})
        policy = request.policy.model_copy(update={"algorithm": algorithm})
        search_options = SearchOptions(time_limit=self.search_options.time_limit, any_size=True)
        problem = lattice_problem(replace(request, policy=policy, options=search_options))
        top = problem.lattice.top
        self._answers.bottom = tuple(max(0, level - 1) if place < 2 else level for place, level in enumerate(top))
        problem = replace(problem, lattice=replace(problem.lattice, bottom=self._answers.bottom))
        if self.search_options.levels is not None:
            search_options = SearchOptions(levels=dict(zip(problem.lattice.names, top, strict=True)))
        return search(problem, policy, search_options)
