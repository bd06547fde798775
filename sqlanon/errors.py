"""Named errors, each with the exit code a command ends with.

Messages name tables, columns, parameters and remedies; never a cell value or a secret.
"""

from __future__ import annotations

from collections.abc import Sequence


class SqlanonError(Exception):
    """Something failed at run time."""

    exit_code = 1


class EngineError(SqlanonError):
    """The database refused or failed a statement."""


class DataError(EngineError):
    """A value of the data is not of the type that a statement takes it for, or beyond its range."""


class ConflictError(SqlanonError):
    """Another run holds what this one needs, or the source changed under it.

    holders: the sessions that hold the lock that was waited for, as one text, where they could be seen.
    """

    def __init__(self, message: str, holders: str | None = None) -> None:
        super().__init__(message)
        self.holders = holders


class PolicyError(SqlanonError):
    """The policy, or the command line, is wrong; `problems` lists everything found."""

    exit_code = 2

    def __init__(self, problems: Sequence[str] | str) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[PolicyError], tuple[tuple[str, ...]]]:
        return type(self), (self.problems,)  # to another process with its problems apart


class QuestionError(PolicyError):
    """A question is wrong, by its own words and the names of columns: whoever asks may read why."""


class ProtectionError(SqlanonError):
    """No release can meet the models that the policy asks for."""

    exit_code = 3


class BudgetError(ProtectionError):
    """The privacy budget does not cover what the run would consume; nothing was looked at."""


class VerificationError(SqlanonError):
    """The staged release failed its independent check; nothing was published."""

    exit_code = 3


class AccessError(SqlanonError):
    """The database can't be reached, or the role lacks a privilege."""

    exit_code = 4


class OutputError(SqlanonError):
    """A release was published, and what the command had to say of it could not be written."""

    exit_code = 5


class Cancelled(SqlanonError):
    """The run was interrupted; nothing was published."""

    exit_code = 130


class Notice(UserWarning):
    """Something to be known that stops nothing, such as the place of a catalog; commands print it on stderr."""


def unreadable(what: str, error: OSError) -> SqlanonError:
    """Make the error of a file that can't be read: a wrong name is the caller's, a denied one the system's.

    what: the file with an article, such as `The policy policy.yml`.
    """
    kind = AccessError if isinstance(error, PermissionError) else PolicyError
    return kind(f"{what} can't be read: {error.strerror}.")
