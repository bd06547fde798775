"""A policy as text again: what the catalog keeps of it."""

from __future__ import annotations

import json
from os.path import dirname, sep
from typing import Any

from sqlanon.engines.urls import redacted
from sqlanon.policy import Policy
from sqlanon.policy.keys import KeyFile
from sqlanon.policy.part import Part
from sqlanon.policy.privacy import costs_of, populations_elsewhere
from sqlanon.support.environment import Expanded, written


def policy_text(policy: Policy) -> str:
    """The policy in one canonical form, JSON (which is YAML too), without passwords, and with `${NAME}` as written.

    Parts that have their default are left out, but for what NULLs are where that is not `allow`; `parse_stored` reads
    the text as an equal policy, but for redacted passwords.
    """
    data = policy.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if "algorithm" in data:  # whose name may be the default one
        data["algorithm"] = {"name": policy.algorithm.name, **data["algorithm"]}
    for name in ("source", "release", "catalog"):
        _write(data.get(name, {}), getattr(policy, name), "url", "file")
        if "url" in data.get(name, {}):
            data[name]["url"] = redacted(data[name]["url"])
    for name, attribute in policy.attributes.items():
        _write(data["attributes"][name].get("hierarchy", {}), attribute.hierarchy, "csv")
        if isinstance(attribute.key, KeyFile):
            _write(data["attributes"][name]["key"], attribute.key, "file")
    for place, costs in costs_of(policy.privacy).items():
        _write(data["privacy"][place]["distance"], costs, "csv")
    for place, population in populations_elsewhere(policy.privacy).items():
        _write(data["privacy"][place]["population"], population, "url")
        data["privacy"][place]["population"]["url"] = redacted(data["privacy"][place]["population"]["url"])
    for mapping, name, entry, key in policy.algorithm.entries_with_files():
        _write(data["algorithm"][mapping][name], entry, key)
    return json.dumps(data, ensure_ascii=False, indent=2)


def put_back(text: str, policy: Policy) -> str:
    """A statement or message that names a policy's files, and what is beside them, as the policy writes their names."""
    csvs = (a.hierarchy.csv for a in policy.attributes.values() if a.hierarchy is not None)
    keys = (a.key.file for a in policy.attributes.values() if isinstance(a.key, KeyFile))
    costs = (one.csv for one in costs_of(policy.privacy).values())
    others = (getattr(entry, key) for _, _, entry, key in policy.algorithm.entries_with_files())
    for file in (policy.source.file, policy.release.file, *csvs, *keys, *costs, *others):
        if isinstance(file, Expanded):
            text = text.replace(str(file), file.written)
            text = text.replace(f"{dirname(file)}{sep}", f"{dirname(file.written)}{sep}")
    return text


def _write(data: dict[str, Any], part: Part | None, *keys: str) -> None:
    """Put texts as a policy writes them in the place of those that they stand for."""
    for key in keys:
        if key in data:
            data[key] = written(getattr(part, key))
