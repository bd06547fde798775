"""The release of a recorded run, made again by its stored rules over the same rows, and what proves it the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlanon.algorithms import SearchRequest
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.catalog import Catalog, Run, Status
from sqlanon.errors import PolicyError
from sqlanon.plan.plan import Plan
from sqlanon.policy import Policy, Show
from sqlanon.policy.loading import parse_stored
from sqlanon.releases.rules.store_rules import StoredRules, read_rules
from sqlanon.results.run_result import RunResult
from sqlanon.runs import OnViolation
from sqlanon.runs.choices import choices_of
from sqlanon.runs.class_source import ClassSource
from sqlanon.runs.execution import ClassRun, Encoded
from sqlanon.runs.resuming import divide_again
from sqlanon.runs.search_source import Search
from sqlanon.runs.stored import Application, Stored
from sqlanon.work.session import database_url


def stored_policy(recorded: Run, url: str | None, database: str, known: Policy | None) -> Policy:
    """Read the policy of a run, with the URL of the database that it worked in, whose password catalogs do not keep.

    url, database: of the session that reads the source now. known: a policy whose `subject` holds, if it has one.

    Raises PolicyError where the run read a table of another database.
    """
    stored = parse_stored(recorded.policy)
    home = database_url(stored)
    if stored.source.table is not None and recorded.database != database:
        raise PolicyError(f"Run {recorded.id} read {recorded.source} in another database, whose URL is not known here.")
    changes: dict[str, Any] = {"subject": known.subject} if known is not None and known.subject is not None else {}
    for name in ("source", "release"):
        part = getattr(stored, name)
        if part.url is not None and part.url == home and recorded.database == database:
            changes[name] = part.model_copy(update={"url": url})
    return stored.model_copy(update=changes)


def recoded_again(catalog: Catalog, recorded: Run, rules: StoredRules) -> ClassSource:
    """Make the source of the release that a run published, by the rules that it left or applied."""
    policy, choices = parse_stored(recorded.policy), choices_of(catalog, recorded)
    if choices is None and not (policy.from_cut_to_cut and rules.record.has_boxes):
        return _ByRules(recorded, rules)
    how: OnViolation = "error" if choices is not None and choices.on_violation == "error" else "suppress"
    budget = None if choices is None else choices.budget
    again = Application(recorded.id, recorded.source, on_violation=how, budget=budget)
    return Stored(catalog, again, recorded, rules)


class _ByRules(Search):
    """The release that a search came to, by its rules."""

    def __init__(self, recorded: Run, rules: StoredRules) -> None:
        super().__init__(parse_stored(recorded.policy).algorithm, SearchOptions())
        self._recorded, self._rules_of_run = recorded, rules

    def _search(self, run: ClassRun, request: SearchRequest, encoded: Encoded) -> Any:  # noqa: ARG002
        result = self._recorded.result
        assert result is not None
        return divide_again(run, request, self._rules_of_run).as_searched(0, result.algorithm.facts, None)


def require_rules(catalog: Catalog, recorded: Run) -> StoredRules:
    """Read the rules of a run's release.

    Raises PolicyError where the run published nothing, or left no rules that say who was in which class.
    """
    if recorded.status is not Status.PUBLISHED:
        raise PolicyError(f"Run {recorded.id} published nothing ({recorded.status}).")
    rules = read_rules(catalog, recorded.id)
    if recorded.result is None:
        raise PolicyError(f"Run {recorded.id} recorded no result, and so no digest of its source.")
    return rules


def digest_of_release(catalog: Catalog, recorded: Run, plan: Plan) -> str | None:
    """Read the digest of the rows that a run released; None where it took none, or they can't be made again."""
    if any(one.show is Show.SURROGATE for one in plan.attributes):
        return None
    return next((one.content_digest for one in catalog.releases(recorded.id)), None)


def require_same_source(
    recorded: Run, rows: int, fingerprint: str | None, engine_version: str, released: str | None
) -> None:
    """Refuse a source that is not known to be as the run read it.

    rows, fingerprint: of the source now, by the engine of this version. released: the digest of the rows that the run
    released, by which another version of the engine can tell.
    """
    result = recorded.result
    assert result is not None
    then = result.source.rows
    if then != rows:
        raise PolicyError(_changed(recorded, f"it had {then:,} rows, and has {rows:,}"))
    if result.source.digest is None:
        raise PolicyError(_unknown(recorded, "the run recorded no digest of its rows"))
    if result.source.digest == fingerprint:
        return
    if recorded.engine_version != engine_version:
        if released is not None:
            return
        how = f"the digest of its rows was taken by {recorded.engine_version}, and {engine_version} takes another"
        raise PolicyError(_unknown(recorded, how))
    raise PolicyError(_changed(recorded, "the values or types of its columns are others"))


def require_same_release(recorded: Run, made: RunResult, digest: str | None, released: str | None) -> None:
    """Refuse a release that is not the published one, by its figures and, where the run took one, its digest.

    digest: of the rows that are made now; released: of those that were published.
    """
    differing = list(_differences(recorded, made))
    if released is not None and digest != released:
        differing.append("the digest of its rows")
    if differing:
        raise PolicyError(
            f"The persons of run {recorded.id} can't be known: its rules make another release now"
            f" ({', '.join(differing)} differ)."
        )


def _differences(recorded: Run, made: RunResult) -> Iterator[str]:
    assert recorded.result is not None
    then, now = recorded.result.release, made.release
    for name, words in (("rows", "rows"), ("suppressed", "suppressed rows"), ("class_sizes", "sizes of classes")):
        if getattr(then, name) != getattr(now, name):
            yield words


def _changed(recorded: Run, how: str) -> str:
    return (
        f"The persons of run {recorded.id} can't be known: {recorded.source} has changed since ({how}). Put the rows of"
        " then in their place, out of a backup, and try again."
    )


def _unknown(recorded: Run, how: str) -> str:
    return (
        f"The persons of run {recorded.id} can't be known: nothing says whether {recorded.source} is as it was, as"
        f" {how}."
    )
