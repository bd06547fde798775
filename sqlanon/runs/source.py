"""Where the recoding of a release comes from: a search; see `stored` and `resuming` for the others."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sqlanon.encoding.coded_table import CodedTable, encode
from sqlanon.lattice.wishes import Wishes
from sqlanon.partition.result import Partition
from sqlanon.plan import Plan
from sqlanon.policy import Algorithm, seed_of
from sqlanon.release.recode import Recoding, create_regions
from sqlanon.release.staging import Staged
from sqlanon.results.source import Origin
from sqlanon.rules.boxed import show_boxes
from sqlanon.rules.keeping import keep_rules, make
from sqlanon.rules.store import StoredRules
from sqlanon.runs.execution import Encoded, Recoded, RunExecution
from sqlanon.runs.result_builder import ResultBuilder
from sqlanon.runs.searching import search_partition


class ReleaseSource(ABC):
    """What decides how a release is recoded. The flow asks it in the order of these methods.

    algorithm, seed, job: what the catalog records of the run.
    wishes: options of the search; None where nothing is searched, so that nothing is left to take up.
    pinned: what the source has to be, where the recoding is bound to one.
    rules_run, rules_digest: the run whose rules are applied, and their digest; None where rules are searched for.
    """

    algorithm: str
    seed: int | None = None
    job: str | None = None
    wishes: Wishes | None = None
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
        return Encoded(encode(run.engine, run.plan, run.workspace))

    @abstractmethod
    def recode(self, run: RunExecution, encoded: Encoded) -> Recoded:
        """Find what each row is to show."""

    @abstractmethod
    def keep_rules(self, run: RunExecution, recoded: Recoded) -> StoredRules | None:
        """Write down how new rows are recoded like these; None where there is nothing to write down."""

    def require_staged(self, run: RunExecution, staged: Staged) -> None:  # noqa: B027 - most have nothing to do
        """Refuse a staged release that may not take the place of the one that is there."""

    def conclude(self, outcome: ResultBuilder) -> None:  # noqa: B027 - most have nothing to do
        """Say in the outcome what the source has to say of itself."""


class Search(ReleaseSource):
    """The search that the policy's algorithm asks for."""

    wishes: Wishes

    def __init__(self, algorithm: Algorithm, wishes: Wishes) -> None:
        self.algorithm = algorithm.name
        self.seed = seed_of(algorithm)
        self.wishes = wishes

    def recode(self, run: RunExecution, encoded: Encoded) -> Recoded:
        with run.journal.during("search"):
            partition = self._search(run, encoded.coded, encoded)
        with run.journal.during("recode"):
            return show_regions(run, encoded.coded, partition)

    def _search(self, run: RunExecution, coded: CodedTable, encoded: Encoded) -> Partition:
        report = run.journal.progress
        return search_partition(
            run.engine, run.workspace, coded, encoded.tuples, run.models, run.policy, report, self.wishes
        )

    def keep_rules(self, run: RunExecution, recoded: Recoded) -> StoredRules | None:
        return keep_rules(run.engine, run.catalog, run.workspace, run.outcome.run, recoded.recoding, recoded.made)


def show_regions(run: RunExecution, coded: CodedTable, partition: Partition) -> Recoded:
    """Say what a partition of these rows shows: ranges over the values of its classes, or from cut to cut."""
    recoding = create_regions(run.engine, run.workspace, coded, partition)
    if run.policy.ranges == "cuts" and partition.tree is not None:
        return _show_cuts(run, recoding)
    return Recoded(recoding, partition)


def _show_cuts(run: RunExecution, recoding: Recoding) -> Recoded:
    """Show ranges from cut to cut, by the recoding's own rules."""
    names = run.workspace.table("rule_names")
    made = make(run.engine, run.workspace, recoding, names)
    assert made is not None
    boxed, widened = show_boxes(run.engine, run.workspace, recoding, made, names)
    run.workspace.drop(names)
    return Recoded(boxed, widened, made)
