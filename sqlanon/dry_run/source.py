"""The search of a dry run."""

from __future__ import annotations

from dataclasses import replace

from sqlanon.dry_run.answers import FakeAnswers
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.lattice.search import pose, search
from sqlanon.lattice.wishes import Wishes
from sqlanon.partition.collapse import Tuples
from sqlanon.partition.result import Partition
from sqlanon.policy import FullDomain, Policy
from sqlanon.runs.execution import Encoded, RunExecution
from sqlanon.runs.source import Search

_REPEATS = 2  # statements of one template that a search over a lattice shows


class ShortSearch(Search):
    """The policy's search; of a lattice it looks at the most general nodes alone, as heights are made up."""

    def __init__(self, policy: Policy, wishes: Wishes, answers: FakeAnswers) -> None:
        super().__init__(policy.algorithm, wishes)
        self._answers = answers

    def _search(self, run: RunExecution, coded: CodedTable, encoded: Encoded) -> Partition:
        algorithm = run.policy.algorithm
        if isinstance(algorithm, FullDomain):
            self._answers.script.repeats = _REPEATS
            partition = self._search_top(run, coded, encoded.tuples, algorithm)
            self._answers.script.repeats = None
        else:
            partition = super()._search(run, coded, encoded)
        self._answers.omitted = partition.omitted
        return partition

    def _search_top(
        self, run: RunExecution, coded: CodedTable, tuples: Tuples | None, algorithm: FullDomain
    ) -> Partition:
        policy = run.policy.model_copy(update={"algorithm": algorithm.model_copy(update={"limits": {}})})
        wishes = Wishes(time_limit=self.wishes.time_limit, any_size=True)
        problem = pose(run.engine, run.workspace, coded, tuples, run.models, policy, run.journal.progress, wishes)
        top = problem.lattice.top
        self._answers.bottom = tuple(max(0, level - 1) if place < 2 else level for place, level in enumerate(top))
        problem = replace(problem, lattice=replace(problem.lattice, bottom=self._answers.bottom))
        if self.wishes.levels is not None:
            wishes = Wishes(levels=dict(zip(problem.lattice.names, top, strict=True)))
        return search(problem, policy, wishes)
