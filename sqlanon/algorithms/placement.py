"""The place of a search: the run's own session, or one beside the rows, where the rows are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.engines.base import Engine
from sqlanon.models.base import PrivacyModel
from sqlanon.policy import Policy, Role
from sqlanon.sql import Relation
from sqlanon.work.journal import Progress
from sqlanon.work.workspace import TemporaryWorkspace, carry_out_keeping

Decision = TypeVar("Decision")


def search_with_rows(algorithm: Algorithm[Decision], request: SearchRequest) -> Decision:
    """Search for a release in the session that holds the coded rows, which for most engines is the request's own.

    A search elsewhere decides the same, and its work tables are called the same; it tells nothing of its progress.

    Rows that are too many for one task stay where they are, and a search that can do so divides itself among several.

    Raises ProtectionError where no release can meet the models.
    """
    if algorithm.divides and request.engine.tasks_for(request.coded.source_rows):
        return algorithm.search(request)
    tables, rows = relations_of_search(algorithm, request)
    return request.engine.carry_out_with_rows(tables, rows, _Search(algorithm, request))


def relations_of_search(
    algorithm: Algorithm[Any], request: SearchRequest
) -> tuple[tuple[Relation, ...], tuple[Relation, ...]]:
    """List the relations that a search reads: small ones, which are dictionaries, and those of rows.

    Witnesses and columns that are only kept are read by what follows a search, and kept values that are not coded by
    the searches that say so.
    """
    coded, target = request.coded, request.policy.target
    kept_only = [f for f in coded.kept if f.attribute.role is Role.INSENSITIVE and f.attribute.name != target]
    codings = [f.coding for f in (*coded.fields, *coded.judged)]
    dictionaries = [f.coding.dictionary for f in (*coded.fields, *coded.judged) if f not in kept_only]
    aside = {one.dictionary for one in codings if one.is_aside}
    tuples = [request.tuples.table] if request.tuples is not None else []
    values = aside if algorithm.reads_uncoded else ()
    small = dict.fromkeys(one for one in dictionaries if one is not None and one not in aside)
    if coded.population is not None:
        tuples.append(coded.population)
    return tuple(small), (coded.rows, *tuples, *(one for one in values if one is not None))


@dataclass(frozen=True)
class _Search(Generic[Decision]):
    """A search in the request's own session, which is pickled as one in another session."""

    algorithm: Algorithm[Decision]
    request: SearchRequest

    def __call__(self, engine: Engine) -> Decision:
        """Search there; the session is the request's."""
        assert engine is self.request.engine
        return self.algorithm.search(self.request)

    def __reduce__(self) -> tuple[type[PlacedSearch[Decision]], tuple[object, ...]]:
        one = self.request
        asked = one.coded, one.models, one.policy, one.options, one.tuples
        return PlacedSearch, (self.algorithm, one.workspace.prefix, *asked)


@dataclass(frozen=True)
class PlacedSearch(Generic[Decision]):
    """A search in any session that holds the tables of a request under the same names.

    prefix: of the request's work tables. All else is as in `SearchRequest`.
    """

    algorithm: Algorithm[Decision]
    prefix: str
    coded: CodedTable
    models: tuple[PrivacyModel, ...]
    policy: Policy
    options: SearchOptions
    tuples: Tuples | None

    def __call__(self, engine: Engine) -> Decision:
        """Search in a session, and leave there, of what it made, the tables that the decision names."""
        workspace = TemporaryWorkspace(engine, self.prefix)
        asked = self.coded, self.models, self.policy, self.options
        request = SearchRequest(engine, workspace, *asked, _report_nothing, self.tuples)
        return carry_out_keeping(workspace, lambda: self.algorithm.search(request))


def _report_nothing(progress: Progress) -> None:
    del progress
