"""Algorithms: what a search is given, and what every algorithm has to answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.algorithms.tree.groups import groups_of
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import WORTH_SHARE, Tuples, collapse
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.models.base import PrivacyModel
from sqlanon.plan.repair import UNMERGED
from sqlanon.policy import AlgorithmParameters, Policy
from sqlanon.releases.base import Release
from sqlanon.releases.earlier_groups import EarlierGroups
from sqlanon.releases.former_sets import FormerSets
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.staging.partition import Partition
from sqlanon.work.journal import Progress
from sqlanon.work.workspace import Workspace

Decision = TypeVar("Decision")


@dataclass(frozen=True)
class SearchRequest:
    """A coded table, and the release that is wanted of it.

    options: what the call asks of the search beside the policy.
    report: takes the progress of the search, for whoever watches.
    tuples: the distinct tuples of the coded rows with their counts, where the algorithm works on them.
    sets: what classes of persons showed before, where the algorithm holds it; None where no account says so.
    """

    engine: Engine
    workspace: Workspace
    coded: CodedTable
    models: tuple[PrivacyModel, ...]
    policy: Policy
    options: SearchOptions
    report: Callable[[Progress], None]
    tuples: Tuples | None = None
    sets: FormerSets | None = None

    def without_suppression_limit(self) -> SearchRequest:
        """Ask for the same release however many rows it suppresses and however large its lattice is."""
        lenient = self.policy.model_copy(update={"suppression": _ANY_SHARE})
        return replace(self, policy=lenient, options=SearchOptions(any_size=True))

    def with_tuples(self, algorithm: Algorithm[Any]) -> SearchRequest:
        """Ask with the distinct tuples that an algorithm works on counted."""
        return replace(self, tuples=algorithm.distinct_tuples(self))


_ANY_SHARE = 1.0  # of rows suppressed, where whoever asks counts them; also of a single one


class Algorithm(ABC, Generic[Decision]):
    """A search that policies name, with its parameters.

    `search` decides what becomes of the rows, in statements that the database carries out; `release` gives the decision
    the kind of release that shows it. Both may write work tables of the request's workspace, and nothing else.

    worth: the distinct tuples per row up to which the search works on these; None where it always reads the rows.
    reads_uncoded: whether the search reads kept values that are not coded.
    divides: whether the search divides itself among tasks where rows are elsewhere, and too many for one task.
    needs_all_witnesses: whether the claims of its releases can be checked on all rows alone, not on a sample.
    Parameters: the class of the parameters in policies; its docstring is what people read of the algorithm.
    """

    worth: ClassVar[float | None] = None
    reads_uncoded: ClassVar[bool] = True
    divides: ClassVar[bool] = False
    needs_all_witnesses: ClassVar[bool] = False
    Parameters: ClassVar[type[AlgorithmParameters]]

    def __init__(self, parameters: Any) -> None:
        self.parameters = parameters

    @property
    def seed(self) -> int | None:
        """The seed that its samples depend on; None where it draws none."""
        return getattr(self.parameters, "seed", None)

    def distinct_tuples(self, request: SearchRequest) -> Tuples | None:
        """Count the distinct tuples that the search works on; None where it reads the coded rows."""
        if self.worth is None:
            return None
        fields = groups_of(self.parameters, request.models).fields(request.coded)
        return collapse(request.engine, request.workspace, request.coded, fields, self.worth)

    def by_rules(self, stored: StoredRules) -> Algorithm[Decision]:  # noqa: ARG002
        """Return the algorithm that decides as stored rules of it say, in place of a search.

        Raises PolicyError where its rules are not decided by it: those of trees and cuts are applied to rows.
        """
        raise PolicyError(f"The rules of {self.parameters.name} are applied to rows, and not searched by.")

    def shortened(self, request: SearchRequest) -> SearchRequest | None:  # noqa: ARG002
        """Ask for the part of a search that a dry run shows; None for all of it."""
        return None

    def coarsen(self, request: SearchRequest, decision: Decision, earlier: EarlierGroups) -> Decision | None:  # noqa: ARG002
        """Merge classes of a decision until they divide no earlier group into parts that fail; None where none do so.

        Raises PolicyError where classes of the algorithm can't be merged.
        """
        raise PolicyError(f"--repair: {self.parameters.name} {UNMERGED}")

    @abstractmethod
    def search(self, request: SearchRequest) -> Decision:
        """Decide what becomes of the rows.

        Raises ProtectionError where no release can meet the models.
        """

    @abstractmethod
    def release(self, request: SearchRequest, decision: Decision) -> Release:
        """Give a decision the kind of release that shows it."""


class PartitionSearch(Algorithm[Partition]):
    """A search of coded rows, or of their distinct tuples, for a partition.

    find_partition: the search itself.
    """

    worth = WORTH_SHARE
    reads_uncoded: ClassVar[bool] = False
    find_partition: ClassVar[Callable[..., Partition]]

    def search(self, request: SearchRequest) -> Partition:
        return self.find_partition(
            request.engine,
            request.workspace,
            request.coded,
            request.tuples,
            request.models,
            self.parameters,
            request.report,
        )
