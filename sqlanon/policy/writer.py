"""A policy as text again: what the catalog keeps of it."""

from __future__ import annotations

import json
from typing import Any

from sqlanon.engines.urls import redacted
from sqlanon.policy import Policy


def policy_text(policy: Policy) -> str:
    """The policy in one canonical form, JSON (which is YAML too), without passwords.

    Parts that have their default are left out, but for what NULLs are where that is not `allow`; `parse_stored` reads
    the text as an equal policy, but for redacted passwords.
    """
    data = policy.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for name in ("source", "release", "catalog"):
        part = data.get(name, {})
        if "url" in part:
            part["url"] = redacted(part["url"])
        _escape(part, "url", "file")
    for attribute in data["attributes"].values():
        _escape(attribute.get("hierarchy", {}), "csv")
    return json.dumps(data, ensure_ascii=False, indent=2)


def _escape(part: dict[str, Any], *keys: str) -> None:
    """Double each `$`, which the reader would take for a reference to the environment."""
    for key in keys:
        if key in part:
            part[key] = part[key].replace("$", "$$")
