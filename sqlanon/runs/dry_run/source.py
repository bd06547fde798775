"""The search of a dry run."""

from __future__ import annotations

from typing import Any

from sqlanon.algorithms import SearchRequest, algorithm_of
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.policy import Policy
from sqlanon.runs.dry_run.answers import FakeAnswers
from sqlanon.runs.execution import ClassRun, Encoded
from sqlanon.runs.searching import Search

_REPEATS = 2  # statements of one template that a shortened search shows


class ShortSearch(Search):
    """The policy's search, shortened as its algorithm says: heights and sizes are made up."""

    def __init__(self, policy: Policy, search_options: SearchOptions, answers: FakeAnswers) -> None:
        super().__init__(policy.algorithm, search_options)
        self._answers = answers

    def _search(self, run: ClassRun, request: SearchRequest, encoded: Encoded) -> Any:
        shortened = algorithm_of(request.policy.algorithm).shortened(request)
        if shortened is not None:
            request = shortened
            self._answers.script.repeats = _REPEATS
        self._answers.algorithm = request.policy.algorithm
        decision = super()._search(run, request, encoded)
        self._answers.script.repeats = None
        self._answers.omitted = decision.omitted
        return decision
