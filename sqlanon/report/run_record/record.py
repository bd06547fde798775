"""The record of a run as one document: what was asked, what was made of what, what was checked, what was released."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlanon.catalog import RECODING, Catalog, ReleaseRecord, Run, Status
from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.plan.opening import is_star_of, open_release_table, other_kind, replaced_sentence
from sqlanon.policy import Policy
from sqlanon.policy.loading import parse_stored
from sqlanon.releases.rules.store_rules import read_rules
from sqlanon.results.codec import to_json
from sqlanon.results.run_result import ReleaseResult
from sqlanon.runs.choices import choices_of
from sqlanon.sql import Relation
from sqlanon.support.environment import require_set
from sqlanon.values.digest import FILE, file_digest, joined_digest, table_digest
from sqlanon.work.publish.companion import companion_of

FORMAT, VERSION = "sqlanon record", 1


def recorded_policy(document: Mapping[str, Any], url: str | None = None) -> Policy:
    """The policy of a record as it was run, with the URL of the release where another one is given."""
    data = document.get("policy")
    if not isinstance(data, dict):
        raise PolicyError("This is no record that `sqlanon record` wrote: policy is missing.")
    policy = parse_stored(json.dumps(data, ensure_ascii=False))
    if url is None or policy.release.file is not None:
        return policy
    return policy.model_copy(update={"release": policy.release.model_copy(update={"url": url})})


def place_of_release(policy: Policy) -> str:
    """The table or file of a release, as the policy names it."""
    require_set(policy.release.file)
    return policy.release.file or policy.release.table or ""


def places_of_tables(policy: Policy, place: str) -> list[str]:
    """List the tables of a release that is at `place`, or its file: several are published together."""
    if not policy.algorithm.releases_clusters:
        return [place]
    return [place, str(companion_of(Relation.parse(place)))]


@dataclass(frozen=True)
class ReleasedNow:
    """The content of a release's places: the release's digest, or at `place` the kind of another relation, or none."""

    digest: str | None = None
    place: str = ""
    other: str | None = None

    @property
    def sentence(self) -> str:
        """Say why there is no digest."""
        if self.other is None:
            return f"{self.place} is no longer there."
        return replaced_sentence(self.place, self.other)


def digest_release(policy: Policy, places: Sequence[str], options: EngineOptions | None) -> ReleasedNow:
    """Take the digest of a release as it is now. What is no table, nor the view of a star, is not read.

    places: those of its tables that the digest is to cover; see `places_of_tables`.
    """
    if policy.release.file is not None:
        (file,) = places
        return ReleasedNow(file_digest(file) if Path(file).exists() else None, file)
    digests = []
    with connect(policy.release.url or policy.source.url or "", options, read_only=True) as engine:
        for place in places:
            relation = engine.resolve(Relation.parse(place))
            if relation is None:
                return ReleasedNow(place=place)
            if not is_star_of(engine, policy, relation) and (other := other_kind(engine, relation)) is not None:
                return ReleasedNow(place=place, other=other)
            with open_release_table(engine, policy, place) as held:
                digests.append(table_digest(engine, held))
    return ReleasedNow(joined_digest(digests))


def make_record(catalog: Catalog, run: Run) -> dict[str, Any]:
    """The record of a run that published a release, to be `sealed`.

    Raises PolicyError for a run that published nothing, or of which too little was kept.
    """
    if run.method_result is not None:
        raise PolicyError(
            f"Run {run.id} released {run.method_result.shows}, of which no record is exported yet: `sqlanon verify`"
            " holds its release against the catalog."
        )
    if run.status is not Status.PUBLISHED:
        raise PolicyError(f"Run {run.id} has no record: its status is {run.status.value}, not published.")
    if run.result is None:
        raise PolicyError(f"Run {run.id} has no record: the catalog keeps no result of it, as of a condensed stream.")
    release = next((one for one in catalog.releases(run.id) if one.relation == run.release), None)
    if release is None:
        raise PolicyError(f"The catalog holds no release of run {run.id}.")
    origin = _origin(catalog, run, release)
    hierarchies = run.result.hierarchies or (origin.result and origin.result.hierarchies) or ()
    if release.content_digest is None:
        _require_latest(catalog, run)
    choices = choices_of(catalog, run)
    digested = "record" if release.content_digest is None else "run"
    sets = None if run.result.history is None else run.result.history.sets
    return {
        "format": FORMAT,
        "version": VERSION,
        "run": {
            "id": run.id,
            "started": run.started.isoformat(),
            "finished": run.finished.isoformat() if run.finished else None,
            "job": run.job,
            "sqlanon": run.sqlanon_version,
            "engine": run.engine_version,
            "database": run.database,
        },
        "source": {"table": run.source, "rows": run.source_rows},
        "policy": json.loads(run.policy),
        "application": None if choices is None else choices.as_json(),
        "hierarchies": to_json(hierarchies),
        **({} if run.result.costs is None else {"costs": to_json(run.result.costs)}),  # earlier runs noted none
        "recoding": {"run": origin.id, **_recoding(catalog, origin.id, release)},
        "release": {**_numbers(run.result.release), "digested": digested, "digest": release.content_digest},
        "verification": {
            "models": to_json(run.result.models),
            "checks": to_json(run.result.checks or {}),
            "risk": to_json(run.result.risk),
            "metrics": to_json(run.result.metrics),
            **({} if sets is None else {"sets": to_json(sets)}),  # of m-invariance alone
            "verified": run.result.verified,
        },
    }


def _require_latest(catalog: Catalog, run: Run) -> None:
    """Refuse to record an undigested release that a later run has replaced: its content is no longer known."""
    same = (one for one in catalog.runs(None) if one.status is Status.PUBLISHED and one.release == run.release)
    if next(same).id != run.id:
        raise PolicyError(
            f"A later run replaced the release of run {run.id}, which was not digested before; to digest every release,"
            " write `digest: run` in the policy."
        )


def sealed(document: Mapping[str, Any], url: str | None, options: EngineOptions | None) -> dict[str, Any]:
    """The record with the digest of its release, which is taken now if the run took none, and with its own.

    url: the database that the release is in, if not the recorded one, or if that needs a password.

    Raises:
        PolicyError: the release is no longer there, or something else is in its place.
        AccessError: the database can't be reached.
    """
    release = dict(document["release"])
    if release["digest"] is None:
        policy = recorded_policy(document, url)
        now = digest_release(policy, places_of_tables(policy, place_of_release(policy)), options)
        if now.digest is None:
            raise PolicyError(f"Run {document['run']['id']} did not digest its release. {now.sentence}")
        release["digest"] = now.digest
    whole = {**document, "release": release}
    return {**whole, "digest": document_digest(whole)}


def document_digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 of a record without its own digest, as JSON with sorted keys and no blanks."""
    rest = {name: value for name, value in document.items() if name != "digest"}
    text = json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return FILE + hashlib.sha256(text.encode()).hexdigest()


def _origin(catalog: Catalog, run: Run, release: ReleaseRecord) -> Run:
    """The run whose rules these are; where the database applied them by itself, the hierarchies are of that run too."""
    applied = json.loads(release.recoding).get("applied")
    return run if applied is None else catalog.run(applied)


def _recoding(catalog: Catalog, run: str, release: ReleaseRecord) -> dict[str, Any]:
    """Describe the recoding function by its rules' record and tables, and by their digest."""
    if catalog.rules(run) is None:
        digest = release.digest.removeprefix(RECODING)  # of clusters, as of rules
        return {"kind": release.kind.value, "digest": FILE + digest}
    stored = read_rules(catalog, run)
    parts = [stored.record.content, *(table_digest(catalog.store, table) for table in stored.relations)]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return {"kind": stored.record.kind.value, "rules": stored.record.leaves, "digest": FILE + digest}


def _numbers(release: ReleaseResult) -> dict[str, Any]:
    """The figures of a release, without the sizes of its classes and the texts that explain it."""
    return {name: value for name, value in to_json(release).items() if name not in ("class_sizes", "nulls")}
