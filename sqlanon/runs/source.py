"""Origins of releases: what every kind of run decides for itself, in the order in which the flow asks, and may tell."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from sqlanon.catalog import ReleaseRecord, Step
from sqlanon.engines.publishing import Record, nothing
from sqlanon.engines.statements import StatementListener
from sqlanon.errors import BudgetError, PolicyError, SqlanonError
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.results.measures import Check
from sqlanon.results.records import write_record
from sqlanon.runs.execution import RunExecution
from sqlanon.staging.staging import Staged
from sqlanon.work.journal import Journal

UNKEPT = "A differentially private run failed; the text of its error is not kept, as it might tell of the data."


class TellsAll:
    """Everything may be told to those who may see the source: statements, counts, phases, seconds, errors.

    shown_phase: what others see in place of the phases of a run under way; None where they see these.
    """

    shown_phase: str | None = None

    def listener(self, journal: Journal) -> StatementListener:
        """Return the listener of the run's statements."""
        return journal.note

    def steps(self, journal: Journal) -> Sequence[Step]:
        """List the statements that the catalog records."""
        return journal.steps

    def rows(self, rows: int | None) -> int | None:
        """Return the number of the source's rows, as the catalog records it."""
        return rows

    def kept(self, error: BaseException) -> BaseException:
        """Return the error as the catalog records it."""
        return error

    def raised(self, error: BaseException) -> BaseException:
        """Return the error as the caller gets it."""
        return error


class TellsNoise(TellsAll):
    """Nothing that depends on the source may be told but what was drawn with noise (differential privacy)."""

    shown_phase = "private"

    def listener(self, journal: Journal) -> StatementListener:
        return lambda *_: journal.require_wanted()

    def steps(self, journal: Journal) -> Sequence[Step]:  # noqa: ARG002
        return ()

    def rows(self, rows: int | None) -> None:  # noqa: ARG002
        return None

    def kept(self, error: BaseException) -> BaseException:
        """Return the kind of the error alone, unless it was found before the source was read."""
        return error if isinstance(error, PolicyError | BudgetError) else SqlanonError(UNKEPT)

    def raised(self, error: BaseException) -> BaseException:
        """Hide an error of a library, whose text may quote what the library was given."""
        if isinstance(error, SqlanonError) or not isinstance(error, Exception):
            return error
        hidden = SqlanonError(UNKEPT)
        hidden.__notes__ = getattr(error, "__notes__", [])
        return hidden


RunT = TypeVar("RunT", bound=RunExecution[Any])


ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class DescribedRelease:
    """A release's record in the catalog, and what else the transaction that publishes does.

    rules: to be recorded with it; rules_digest: of the rules by which it was made, where other rows may be recoded so.
    before_commit: is called when all else is done; what it raises undoes it.
    """

    record: ReleaseRecord
    rules: StoredRules | None = None
    rules_digest: str | None = None
    before_commit: Record = nothing


class RunSource(ABC, Generic[RunT, ResultT]):
    """The work of a run. The flow asks it in the order of these methods.

    execution: the kind of run that it works in. telling: what the run may record and tell.
    algorithm, seed, job: what the catalog records of the run.
    """

    execution: ClassVar[type[RunExecution[Any]]] = RunExecution
    telling: ClassVar[TellsAll] = TellsAll()
    algorithm: str
    seed: int | None = None
    job: str | None = None

    def require_source(self, run: RunT) -> None:
        """Refuse a source that the recoding is not about, before it is planned for."""

    @abstractmethod
    def resolve(self, run: RunT, *, replace: bool, is_part: bool) -> Any:
        """Resolve the policy against the live table; raises all that is wrong with it.

        is_part: whether others hold further rows of the same release.
        """

    def require_plan(self, run: RunT) -> None:
        """Refuse a plan that the recoding does not fit; add warnings about earlier releases to it."""

    def begin(self, run: RunT, release: str) -> None:
        """Begin the result of a run that has its plan and its id; `release`: the name of the release."""

    def charge(self, run: RunT) -> None:
        """Write down what the release costs, for good, before anything looks at the source."""

    @abstractmethod
    def make(self, run: RunT, *, publishes: bool) -> None:
        """Decide what becomes of the rows, by one state of the source.

        publishes: whether readers will see the release, so that the source's state is recorded.
        """

    @abstractmethod
    def conclude(self, run: RunT) -> ResultT:
        """Make the result of a run that came to its end."""

    def record(self, result: ResultT) -> str | None:  # noqa: ARG002
        """Write the result as the catalog keeps it; None where it keeps none."""
        return None

    def note_failure(self, run: RunT, error: BaseException) -> None:
        """Add to the error of a run what else the caller has to know."""


class ReleaseSource(RunSource[RunT, ResultT]):
    """The origin of a release, which `Publish` lets be staged, verified and described after it was made.

    rules_run, rules_digest: the run whose rules are applied, and their digest; None where rules are searched for.
    """

    rules_run: str | None = None
    rules_digest: str | None = None

    def tables(self, plan: Any) -> Sequence[tuple[str, str]]:
        """List the tables or files whose rows the release is about, each by its place and its name."""
        return [(plan.source_place, plan.source_name)]

    def snapshot(self, run: RunT) -> contextlib.AbstractContextManager[None]:  # noqa: ARG002
        """Hold one state of what the run reads, until the staged release is checked."""
        return contextlib.nullcontext()

    @abstractmethod
    def stage(self, run: RunT, *, replace: bool) -> contextlib.AbstractContextManager[Staged]:
        """Write the release where nobody sees it yet; what is not published goes with the context."""

    @abstractmethod
    def verify(self, run: RunT, staged: Staged) -> Mapping[str, Check]:
        """Check the staged release on its own; the flow publishes nothing where a check has violations."""

    def require_staged(self, run: RunT, staged: Staged) -> None:
        """Refuse a staged release that may not take the place of the one that is there."""

    @abstractmethod
    def describe(self, run: RunT, staged: Staged) -> DescribedRelease:
        """Describe the release for the catalog."""

    def record(self, result: Any) -> str | None:
        return write_record(result)
