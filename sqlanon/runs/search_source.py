"""Releases that a search finds; see `stored` and `resuming` for the others."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from sqlanon.algorithms import SearchRequest, algorithm_of
from sqlanon.algorithms.placement import search_with_rows
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.encoding.coded_table import CodedTable, encode
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.encoding.person_tuples import count_persons
from sqlanon.models import models_by_rows
from sqlanon.policy import AlgorithmParameters
from sqlanon.releases.base import Release
from sqlanon.releases.earlier_groups import EarlierGroups
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.runs.accounts.repairing import repaired
from sqlanon.runs.accounts.sets import former_sets
from sqlanon.runs.class_source import ClassSource
from sqlanon.runs.execution import ClassRun, Encoded
from sqlanon.work.workspace import Workspace


class Search(ClassSource):
    """The search that the policy's algorithm asks for."""

    search_options: SearchOptions

    def __init__(
        self, parameters: AlgorithmParameters, search_options: SearchOptions, *, repairs: bool = False
    ) -> None:
        self.repairs = repairs
        self.searching = algorithm_of(parameters)
        self.algorithm = parameters.name
        self.seed = self.searching.seed
        self.search_options = search_options

    def encode(self, run: ClassRun) -> Encoded:
        whole = self.searching.needs_all_witnesses or self.repairs or None
        return Encoded(encode(run.engine, run.snapshot, run.workspace, whole=whole))

    def distinct_tuples(self, run: ClassRun, coded: CodedTable) -> Tuples | None:
        if run.policy.person is not None and run.policy.algorithm.counts_persons:
            return count_persons(run.engine, run.workspace, coded, run.policy.person, run.models)
        return self.searching.distinct_tuples(search_request(run, coded, self.search_options))

    def decide(self, run: ClassRun, encoded: Encoded) -> Release:
        request = search_request(run, encoded.coded, self.search_options, encoded.tuples)
        with run.journal.during("search"):
            request = replace(request, sets=former_sets(run, encoded.coded))
            decision = self._search(run, request, encoded)
        with run.journal.during("recode"):
            release = self.searching.release(request, decision)
        if not self.repairs:
            return release
        with run.journal.during("recode"):
            return repaired(run, encoded, release, partial(self._coarsen, request, decision))

    def _coarsen(
        self, request: SearchRequest, decision: Any, earlier: EarlierGroups, workspace: Workspace
    ) -> Release | None:
        apart = replace(request, workspace=workspace)
        coarser = self.searching.coarsen(apart, decision, earlier)
        return None if coarser is None else self.searching.release(apart, coarser)

    def _search(self, run: ClassRun, request: SearchRequest, encoded: Encoded) -> Any:  # noqa: ARG002
        return search_with_rows(self.searching, request)

    def keep_rules(self, run: ClassRun, release: Release) -> StoredRules | None:
        return release.keep_rules(run.engine, run.catalog, run.workspace, run.id)


def search_request(
    run: ClassRun, coded: CodedTable, options: SearchOptions, tuples: Tuples | None = None
) -> SearchRequest:
    """Ask for the release that the run's policy wants of coded rows."""
    report, counts_persons = run.journal.progress, run.policy.algorithm.counts_persons
    models = run.models if counts_persons else models_by_rows(run.policy)
    return SearchRequest(run.engine, run.workspace, coded, models, run.policy, options, report, tuples)
