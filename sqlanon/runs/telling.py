"""Parts of a run that may be recorded and told, by the guarantee of its release."""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.catalog import Step
from sqlanon.engines.statements import StatementListener
from sqlanon.errors import BudgetError, PolicyError, SqlanonError
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
