"""A release against its record: whether either was altered since, and whether the models still hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, EngineError, PolicyError
from sqlanon.hierarchies.digests import changed_costs
from sqlanon.policy import Policy
from sqlanon.policy.privacy import costs_of
from sqlanon.report.run_record.record import (
    FORMAT,
    VERSION,
    digest_release,
    document_digest,
    place_of_release,
    places_of_tables,
    recorded_policy,
)
from sqlanon.support.documents import parse_json, read_bounded, refuse_odd_data
from sqlanon.support.environment import named
from sqlanon.support.suggest import quoted
from sqlanon.values.digest import digests_of
from sqlanon.verification.release import verify_release, why_unjudged
from sqlanon.verification.verdict import Verification

_MOST_BYTES = 64 * 2**20  # of a file with a record: it holds a policy, and numbers of it


@dataclass(frozen=True)
class RecordCheck:
    """The result of checking a record.

    intact: whether the record is as it was written; of one that is not, nothing else is looked at.
    recorded, digest: what the release's digest was, and is now; None where it is no longer there.
    verification: how the models stand; None where there was nothing to measure, which `note` explains.
    judged: whether models can be judged on the release.
    tables: the tables, or the file, that the record covers, in the order of their digests.
    costs: the files of costs that are not what they were when the run measured by them.
    """

    run: str
    release: str
    intact: bool
    recorded: str | None = None
    digest: str | None = None
    verification: Verification | None = None
    note: str | None = None
    judged: bool = True
    tables: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[str, ...]:
        """The tables that are there and not as they were published."""
        if self.digest is None or self.recorded is None:
            return ()
        digests = zip(self.tables, digests_of(self.recorded), digests_of(self.digest), strict=False)
        return tuple(table for table, recorded, now in digests if recorded != now)

    @property
    def unchanged(self) -> bool:
        """Tell whether the release is as it was published."""
        return self.digest is not None and self.digest == self.recorded

    @property
    def satisfied(self) -> bool:
        """Tell whether all is as it was signed."""
        if not self.intact or not self.unchanged or self.costs:
            return False
        return not self.judged if self.verification is None else self.verification.satisfied

    def as_json(self) -> dict[str, Any]:
        """One object of plain values."""
        verification = self.verification
        return {
            "run": self.run,
            "release": self.release,
            "intact": self.intact,
            "there": self.digest is not None,
            "unchanged": self.unchanged,
            "changed": list(self.changed),
            "changed_costs": list(self.costs),
            "recorded": self.recorded,
            "digest": self.digest,
            "models": [asdict(result) for result in verification.models] if verification is not None else None,
            "satisfied": self.satisfied,
            "note": self.note,
        }


_COSTS_CHANGED = (
    "The costs are not what they were when the run measured by them ({files}), so the models are not judged."
    " Restore the file whose digest the record has, or release again."
)
_COSTS_UNKNOWN = (
    "The record is of an earlier version, which has no digest of {files}: nothing says that the costs are those of the"
    " run."
)
_UNCOVERED = "The record is of an earlier version, whose digest does not cover {table}: nothing is said of it."


def read_record(path: Path) -> dict[str, Any]:
    """Read a record; raises PolicyError where there is none, or the file is no record, AccessError if denied."""
    text = read_bounded(path, "record", _MOST_BYTES)
    try:
        document = parse_json(text)
    except PolicyError as error:
        raise PolicyError(f"{path} is no record that `sqlanon record` wrote. {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise PolicyError(f"{path} is no record that `sqlanon record` wrote.")
    if document.get("version") != VERSION:
        raise PolicyError(f"{path} is a record of another version than {VERSION}: use the sqlanon that wrote it.")
    return document


def _required(document: Mapping[str, Any], part: str, key: str) -> str:
    """A text that every record has; PolicyError where this one lacks it."""
    inside = document.get(part)
    value = inside.get(key) if isinstance(inside, dict) else None
    if not isinstance(value, str):
        raise PolicyError(f"This is no record that `sqlanon record` wrote: {part}.{key} is missing.")
    return value


def _costs_pinned(document: Mapping[str, Any]) -> dict[int, str]:
    """The digests of files of costs by the places of their models; PolicyError where they are none."""
    pinned = document.get("costs", [])
    try:
        return {int(one["place"]): str(one["file_digest"]) for one in pinned}
    except (TypeError, KeyError, ValueError):
        raise PolicyError("This is no record that `sqlanon record` wrote: costs are not as it writes them.") from None


def _changed_costs(document: Mapping[str, Any], policy: Policy) -> tuple[tuple[str, ...], list[str]]:
    """The files of costs that are not what they were in the run, and sentences about them and about unpinned ones."""
    pinned = _costs_pinned(document)
    changed = tuple(named(file) for file in changed_costs(policy, pinned).values())
    unpinned = [named(one.csv) for place, one in costs_of(policy.privacy).items() if place not in pinned]
    about = ((_COSTS_CHANGED, changed), (_COSTS_UNKNOWN, unpinned))
    return changed, [text.format(files=", ".join(quoted(files))) for text, files in about if files]


def check_record(
    document: Mapping[str, Any],
    *,
    url: str | None = None,
    table: str | None = None,
    options: EngineOptions | None = None,
) -> RecordCheck:
    """Check a release against its record (see `read_record`), by the table alone; the catalog is not asked.

    url: the database that the release is in, if not that of the record, or if that needs a password.
    table: the table or file that the release is now, if it was renamed or copied.

    Raises:
        AccessError: the database can't be reached.
        PolicyError: the record lacks parts, or holds what no record does.
    """
    refuse_odd_data(document)
    if document_digest(document) != document.get("digest"):
        return RecordCheck("?", "?", intact=False, note="Its digest is not that of its contents.")
    run, recorded = _required(document, "run", "id"), _required(document, "release", "digest")
    policy = recorded_policy(document, url)
    place = table or place_of_release(policy)
    places = places_of_tables(policy, place)
    covered, uncovered = places[: len(digests_of(recorded))], places[len(digests_of(recorded)) :]
    now = digest_release(policy, covered, options)
    checked = RecordCheck(run, place, True, recorded, now.digest, tables=tuple(covered))
    if now.digest is None:
        return replace(checked, note=now.sentence)
    unsaid = [_UNCOVERED.format(table=one) for one in uncovered]
    costs, about_costs = _changed_costs(document, policy)
    unsaid += about_costs
    if costs:
        return replace(checked, note=" ".join(unsaid), costs=costs)
    if unjudged := why_unjudged(policy):
        return replace(checked, note=" ".join([unjudged, *unsaid]), judged=False)
    try:
        verification = verify_release(policy, table, options)
    except (PolicyError, EngineError, AccessError) as error:  # such as a column that is gone, or half a file
        if checked.unchanged:
            raise
        return replace(checked, note=str(error))
    notes = [note for note in (verification.note, *unsaid) if note]
    return replace(checked, verification=verification, note=" ".join(notes) or None)
