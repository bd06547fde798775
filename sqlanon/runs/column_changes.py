"""Changes in the columns of a table, in words: names and types alone.

Jobs tell it of sources and of releases; procedures do so by the same patterns, which PostgreSQL's `format` reads too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlanon.catalog import Run
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.results.source_facts import Origin
from sqlanon.sql import Relation

Columns = Sequence[tuple[str, str]]
"""Names and types as the database writes them, in their order."""

GONE = "'%s' (%s) is gone"
CHANGED = "'%s' was %s and is %s"
NEW = "'%s' (%s) is new"
MOVED = "their order is another"


def columns_of(engine: Engine, table: Relation) -> Columns:
    """The columns of a table as they are now."""
    return tuple((column.name, column.type) for column in engine.columns(table))


def changed_columns(was: Columns, now: Columns) -> str | None:
    """Describe the columns that came, went or changed type, or a new order; None where all is the same."""
    if list(was) == list(now):
        return None
    before, after = dict(was), dict(now)
    changes = [fate for name, kind in was if (fate := _fate(name, kind, after)) is not None]
    changes += [NEW % (name, kind) for name, kind in now if name not in before]
    return ", ".join(changes) or MOVED


def _fate(name: str, kind: str, after: Mapping[str, str]) -> str | None:
    if name not in after:
        return GONE % (name, kind)
    return None if after[name] == kind else CHANGED % (name, kind, after[name])


def source_problem(source: str, since: str, changed: str) -> str:
    """Say why a job refuses its source. since: when the columns were others; changed: the text of `changed_columns`."""
    return (
        f"The columns of {source} are not those that they were {since}: {changed}. Give new ones a role in the"
        " policy, run it again or apply the rules with `sqlanon apply --policy`, and freeze that run; docs/jobs.md says"
        " which."
    )


def release_problem(release: str, job: str, changed: str) -> str:
    """Say why a job refuses to replace its release."""
    return (
        f"{release} has other columns than the rows of job {job}: {changed}. Drop it, or freeze a run of it; nothing"
        " was published."
    )


def created_warning(release: str) -> str:
    """Warn of a job that found no release to replace."""
    return (
        f"{release} was not there: it was created anew, without the privileges, indexes and comments that an earlier"
        " one may have had. Grant again who is to read it."
    )


def pinned_origin(run: Run) -> Origin:
    """Return the origin that a job's source must have: the source's origin in the run whose rules the job applies."""
    recorded = None if run.result is None else run.result.source.origin
    if recorded is None:
        raise PolicyError(
            f"Run {run.id} did not record who owned its source: run the policy again, and freeze that run."
        )
    return recorded


def require_columns(job: str, run: Run, source: str, columns: Columns) -> None:
    """Refuse a job's source if its columns are not those of the run whose rules it applies."""
    recorded = None if run.result is None else run.result.source.columns
    if recorded is None:
        raise PolicyError(
            f"Run {run.id} did not record the columns of its source: run the policy again, and freeze that run."
        )
    changed = changed_columns([(one.name, one.type) for one in recorded], columns)
    if changed is not None:
        raise PolicyError(source_problem(source, f"in run {run.id}, whose rules job {job} applies", changed))
