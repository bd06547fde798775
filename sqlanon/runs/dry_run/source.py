"""The search of a dry run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlanon.algorithms import Algorithm, SearchRequest
from sqlanon.algorithms.placement import search_with_rows
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.methods.generalization.lattice.search import lattice_problem, search
from sqlanon.policy import Policy, Recodes
from sqlanon.releases.base import Release
from sqlanon.releases.recoding import Generalization
from sqlanon.runs.dry_run.answers import FakeAnswers
from sqlanon.runs.dry_run.engine import RecordingEngine
from sqlanon.runs.execution import ClassRun, Encoded
from sqlanon.runs.searching import Search

_REPEATS = 2  # statements of one template that a search over a lattice shows


class ShortSearch(Search):
    """The policy's search; of a lattice it looks at the most general nodes alone, as heights are made up."""

    def __init__(self, policy: Policy, search_options: SearchOptions, answers: FakeAnswers) -> None:
        super().__init__(policy.algorithm, search_options)
        self._answers = answers

    def _search(self, run: ClassRun, request: SearchRequest, encoded: Encoded) -> Any:
        if request.policy.algorithm.recodes is not Recodes.LEVELS:
            decision = super()._search(run, request, encoded)
        else:
            self._answers.script.repeats = _REPEATS
            decision = search_with_rows(_SearchOfTop(self.search_options), request)
            self._answers.script.repeats = None
        self._answers.omitted = decision.omitted
        return decision


@dataclass(frozen=True)
class _SearchOfTop(Algorithm[Generalization]):
    """A search of the most general nodes of a lattice, whatever the policy's algorithm."""

    search_options: SearchOptions

    def search(self, request: SearchRequest) -> Generalization:
        assert isinstance(request.engine, RecordingEngine)
        algorithm = request.policy.algorithm.model_copy(update={"limits": {}})
        policy = request.policy.model_copy(update={"algorithm": algorithm})
        search_options = SearchOptions(time_limit=self.search_options.time_limit, any_size=True)
        problem = lattice_problem(replace(request, policy=policy, options=search_options))
        top = problem.lattice.top
        bottom = tuple(max(0, level - 1) if place < 2 else level for place, level in enumerate(top))
        request.engine.answers.bottom = bottom
        problem = replace(problem, lattice=replace(problem.lattice, bottom=bottom))
        if self.search_options.levels is not None:
            search_options = SearchOptions(levels=dict(zip(problem.lattice.names, top, strict=True)))
        return search(problem, policy, search_options)

    def release(self, request: SearchRequest, decision: Generalization) -> Release:
        """Raise NotImplementedError: the release is the policy's algorithm's."""
        raise NotImplementedError
