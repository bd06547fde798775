"""Facts of a recorded policy that may be shown to anybody: everything but the values that it lists."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlanon.policy.privacy import without_named_values
from sqlanon.sql import short_hash
from sqlanon.support.quantities import quantity


def without_values(policy: Mapping[str, Any]) -> dict[str, Any]:
    """A recorded policy whose mappings, responses and models say how many values they list, and not which."""
    shown = copy.deepcopy(dict(policy))
    for attribute in shown.get("attributes", {}).values():
        hierarchy = attribute.get("hierarchy")
        if hierarchy and "mapping" in hierarchy:
            hierarchy["mapping"] = _counted(hierarchy["mapping"])
    for column in shown.get("algorithm", {}).get("columns", {}).values():
        if "values" in column:
            column["values"] = _counted(column["values"])
    if "privacy" in shown:
        shown["privacy"] = [without_named_values(model) for model in shown["privacy"]]
    return shown


def _counted(listed: Sequence[str] | Mapping[str, Any]) -> str:
    return f"{quantity(len(listed), 'value')}, not shown (digest {short_hash(json.dumps(listed, sort_keys=True))})"


def flattened(policy: Mapping[str, Any]) -> dict[str, str]:
    """The parts of a recorded policy, each by its path, as text; without the values of mappings and models."""
    return dict(_flat((), without_values(policy)))


def flattened_both(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """The parts of two policies; where values that are not shown differ, those of the other one say so."""
    before, after = flattened(one), flattened(other)
    whole = dict(_flat((), one)), dict(_flat((), other))
    for path, shown in after.items():
        if before.get(path) == shown and path in whole[0] and whole[0][path] != whole[1].get(path):
            after[path] = f"{shown}; others than before"
    return before, after


def _flat(path: tuple[str, ...], value: Any) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [pair for key, part in value.items() for pair in _flat((*path, str(key)), part)]
    if isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
        named = (_named(number, part) for number, part in enumerate(value))
        return [pair for name, part in named for pair in _flat((*path, name), part)]
    return [(".".join(path), ", ".join(map(str, value)) if isinstance(value, list) else str(value))]


def _named(number: int, part: Any) -> tuple[str, Any]:
    """A model by what it is and what it is about, so that a new one does not rename the others; and its parameters."""
    if not isinstance(part, Mapping) or "model" not in part:
        return str(number), part
    name = " ".join([part["model"], *([part["attribute"]] if "attribute" in part else [])])
    return name, {key: value for key, value in part.items() if key not in ("model", "attribute")}
