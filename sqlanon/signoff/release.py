"""The release that a record tells of: where it is, and its digest as it is now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlanon.digest import file_digest, table_digest
from sqlanon.engines import connect
from sqlanon.engines.base import EngineOptions
from sqlanon.policy import Policy
from sqlanon.policy.loading import parse_stored
from sqlanon.sql import Relation


def recorded_policy(document: Mapping[str, Any], url: str | None = None) -> Policy:
    """The policy of a record as it was run, with the URL of the release where another one is given."""
    policy = parse_stored(json.dumps(document["policy"]))
    if url is None or policy.release.file is not None:
        return policy
    return policy.model_copy(update={"release": policy.release.model_copy(update={"url": url})})


def place_of_release(policy: Policy) -> str:
    """The table or file of a release, as the policy names it."""
    return policy.release.file or policy.release.table or ""


def release_digest(policy: Policy, place: str, options: EngineOptions | None) -> str | None:
    """The digest of a release as it is now; None where it is no longer there."""
    if policy.release.file is not None:
        return file_digest(place) if Path(place).is_file() else None
    with connect(policy.release.url or policy.source.url or "", options, read_only=True) as engine:
        found = engine.resolve(Relation.parse(place))
        return None if found is None else table_digest(engine, found)
