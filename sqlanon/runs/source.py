"""Origins of a release: a search; see `stored` and `resuming` for the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from sqlanon.algorithms import SearchRequest, algorithm_of
from sqlanon.algorithms.lattice.options import SearchOptions
from sqlanon.algorithms.placement import search_with_rows
from sqlanon.encoding.coded_table import CodedTable, encode
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.encoding.persons import count_persons
from sqlanon.models import models_by_rows
from sqlanon.plan.plan import Plan
from sqlanon.policy import AlgorithmParameters
from sqlanon.releases.base import Release
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.results.source import Origin
from sqlanon.runs.execution import Encoded, RunExecution
from sqlanon.runs.result_builder import ResultBuilder
from sqlanon.staging.staging import Staged


class ReleaseSource(ABC):
    """Decides on a release. The flow asks it in the order of these methods.

    algorithm, seed, job: what the catalog records of the run.
    search_options: options of the search; None where nothing is searched, so that nothing is left to take up.
    pinned: what the source has to be, where the recoding is bound to one.
    rules_run, rules_digest: the run whose rules are applied, and their digest; None where rules are searched for.
    """

    algorithm: str
    seed: int | None = None
    job: str | None = None
    search_options: SearchOptions | None = None
    pinned: Origin | None = None
    rules_run: str | None = None
    rules_digest: str | None = None

    def require_source(self, run: RunExecution) -> None:  # noqa: B027 - most have nothing to do
        """Refuse a source that the recoding is not about, before it is planned for."""

    def require_plan(self, run: RunExecution, plan: Plan) -> None:  # noqa: B027 - most have nothing to do
        """Refuse a plan that the recoding does not fit."""

    def warnings(self, run: RunExecution) -> tuple[str, ...]:  # noqa: ARG002
        """Say what may not have been meant, beside what the plan says."""
        return ()

    def encode(self, run: RunExecution) -> Encoded:
        """Code the source's rows, inside of the transaction that is the run's snapshot."""
        return Encoded(encode(run.engine, run.snapshot, run.workspace))

    def distinct_tuples(self, run: RunExecution, coded: CodedTable) -> Tuples | None:  # noqa: ARG002
        """Count the distinct tuples that a search works on; None where none does."""
        return None

    @abstractmethod
    def decide(self, run: RunExecution, encoded: Encoded) -> Release:
        """Decide what becomes of the rows."""

    @abstractmethod
    def keep_rules(self, run: RunExecution, release: Release) -> StoredRules | None:
        """Store the rules by which new rows are recoded alike; None where there are none, or they are stored."""

    def require_staged(self, run: RunExecution, staged: Staged) -> None:  # noqa: B027 - most have nothing to do
        """Refuse a staged release that may not take the place of the one that is there."""

    def conclude(self, outcome: ResultBuilder) -> None:  # noqa: B027 - most have nothing to do
        """Say in the outcome what the source has to say of itself."""


class Search(ReleaseSource):
    """The search that the policy's algorithm asks for."""

    search_options: SearchOptions

    def __init__(self, parameters: AlgorithmParameters, search_options: SearchOptions) -> None:
        self.searching = algorithm_of(parameters)
        self.algorithm = parameters.name
        self.seed = self.searching.seed
        self.search_options = search_options

    def encode(self, run: RunExecution) -> Encoded:
        whole = self.searching.needs_all_witnesses or None
        return Encoded(encode(run.engine, run.snapshot, run.workspace, whole=whole))

    def distinct_tuples(self, run: RunExecution, coded: CodedTable) -> Tuples | None:
        if run.policy.person is not None and run.policy.algorithm.counts_persons:
            return count_persons(run.engine, run.workspace, coded, run.policy.person, run.models)
        return self.searching.distinct_tuples(search_request(run, coded, self.search_options))

    def decide(self, run: RunExecution, encoded: Encoded) -> Release:
        request = search_request(run, encoded.coded, self.search_options, encoded.tuples)
        with run.journal.during("search"):
            decision = self._search(run, request, encoded)
        with run.journal.during("recode"):
            return self.searching.release(request, decision)

    def _search(self, run: RunExecution, request: SearchRequest, encoded: Encoded) -> Any:  # noqa: ARG002
        return search_with_rows(self.searching, request)

    def keep_rules(self, run: RunExecution, release: Release) -> StoredRules | None:
        return release.keep_rules(run.engine, run.catalog, run.workspace, run.outcome.run)


def search_request(
    run: RunExecution, coded: CodedTable, options: SearchOptions, tuples: Tuples | None = None
) -> SearchRequest:
    """Ask for the release that the run's policy wants of coded rows."""
    report, counts_persons = run.journal.progress, run.policy.algorithm.counts_persons
    models = run.models if counts_persons else models_by_rows(run.policy)
    return SearchRequest(run.engine, run.workspace, coded, models, run.policy, options, report, tuples)
