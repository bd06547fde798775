"""Digests of the hierarchies of a policy: of what they say, wherever their files are, and not of the data's values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlanon.errors import ConflictError, PolicyError
from sqlanon.policy import Hierarchy, Policy
from sqlanon.policy.privacy import costs_of
from sqlanon.results.run_result import CostsUse
from sqlanon.support.environment import named, require_set
from sqlanon.values.digest import FILE, file_digest


def hierarchy_digest(column: str, spec: Hierarchy) -> str:
    """The SHA-256 of a hierarchy's specification, in which the digest of a file stands for its name.

    Raises PolicyError where the file can't be read.
    """
    data = spec.model_dump(mode="json", exclude_defaults=True)
    if spec.csv is not None:
        data["csv"] = _digest_of(column, spec.csv)
    return FILE + hashlib.sha256(json.dumps(data, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def describe_hierarchies(policy: Policy) -> dict[str, dict[str, Any]]:
    """The hierarchy of each attribute that has one: its kind and digest, and its file with that one's digest.

    The length of a mask is not digested, because applying rules sets it to what it was: it is the number of levels.
    """
    described: dict[str, dict[str, Any]] = {}
    for name, attribute in policy.attributes.items():
        spec = attribute.hierarchy
        if spec is not None:
            described[name] = {
                "attribute": name,
                "kind": spec.kind,
                "digest": hierarchy_digest(name, spec.model_copy(update={"length": None})),
            }
            if spec.csv is not None:
                described[name] |= {"file": named(spec.csv), "file_digest": _digest_of(name, spec.csv)}
    return described


def require_unchanged_hierarchies(
    policy: Policy, described: Mapping[str, Mapping[str, Any]], cause: Exception | None = None
) -> None:
    """Raise ConflictError if the file of a hierarchy is not what it was when it was described.

    cause: what came of that, if anything did.
    """
    for name, was in described.items():
        spec = policy.attributes[name].hierarchy
        if spec is None or spec.csv is None:
            continue
        try:
            digest = _digest_of(name, spec.csv)
        except PolicyError:
            digest = None
        if digest != was["file_digest"]:
            raise ConflictError(
                f"The file '{spec.csv}', the hierarchy of column '{name}', changed during the run; nothing was"
                " published. Run again."
            ) from cause


def describe_costs(policy: Policy) -> dict[int, str]:
    """The digest of the file of costs of each privacy model that has one, by its place in the policy.

    Raises PolicyError where the file can't be read.
    """
    return {place: _digest_of_costs(place, costs.csv) for place, costs in costs_of(policy.privacy).items()}


def costs_used(policy: Policy, described: Mapping[int, str]) -> tuple[CostsUse, ...]:
    """The files of costs as a run records them: what they were when they were described, without secrets of paths."""
    costs = costs_of(policy.privacy)
    return tuple(
        CostsUse(place, str(getattr(policy.privacy[place], "attribute", "")), named(costs[place].csv), digest)
        for place, digest in described.items()
    )


def changed_costs(policy: Policy, described: Mapping[int, str]) -> dict[int, str]:
    """The files of costs that are not what they were when they were described, by the places of their models."""
    costs = costs_of(policy.privacy)
    changed = {}
    for place, was in described.items():
        try:
            digest = _digest_of_costs(place, costs[place].csv) if place in costs else was
        except PolicyError:
            digest = None
        if digest != was:
            changed[place] = costs[place].csv
    return changed


def require_unchanged_costs(policy: Policy, described: Mapping[int, str], cause: Exception | None = None) -> None:
    """Raise ConflictError if a file of costs is not what it was when it was described; `cause` is what came of that."""
    for place, file in changed_costs(policy, described).items():
        raise ConflictError(
            f"The file '{file}', the costs of privacy[{place}], changed during the run; nothing was published. Run"
            " again."
        ) from cause


def _digest_of_costs(place: int, file: str) -> str:
    require_set(file)
    try:
        return file_digest(Path(file).expanduser())
    except OSError as failure:
        raise PolicyError(f"privacy[{place}]: the file '{file}' can't be read: {failure.strerror}.") from failure


def _digest_of(column: str, file: str) -> str:
    require_set(file)
    try:
        return file_digest(Path(file).expanduser())
    except OSError as failure:
        raise PolicyError(
            f"Hierarchy of column '{column}': the file '{file}' can't be read: {failure.strerror}."
        ) from failure
