"""The release that a record tells of: where it is, and its digest as it is now."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.plan.opening import is_star_of, open_release_table, other_kind, replaced_sentence
from sqlanon.policy import Policy
from sqlanon.policy.loading import parse_stored
from sqlanon.sql import Relation
from sqlanon.support.environment import require_set
from sqlanon.values.digest import file_digest, joined_digest, table_digest
from sqlanon.work.publish.companion import companion_of


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
