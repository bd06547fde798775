"""The agreement of sites before any counts a row: parts are compared by digests, and those that differ are named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlanon import __version__
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.digests import hierarchy_digest
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.plan.plan import Plan


def require_agreement(party: Party, plan: Plan) -> None:
    """Raise PolicyError, at every site, where the sites' plans or policies differ; it names parts and no values."""
    require_same_parts(party, describe(party, plan))


def require_same_parts(party: Party, parts: Mapping[str, str]) -> None:
    """Raise PolicyError, at every site, where digests of parts differ between the sites."""
    described = party.tell(dict(parts), "while policies were compared")
    problems = compare(dict(zip(party.plan.names, described, strict=True)))
    if problems:
        raise PolicyError(problems)


def describe(party: Party, plan: Plan) -> dict[str, str]:
    """Digest each part that must be the same everywhere."""
    policy = plan.policy
    algorithm = policy.algorithm.model_dump(mode="json")
    parts: dict[str, Any] = {
        "privacy": [model.model_dump(mode="json") for model in policy.privacy],
        "algorithm": algorithm,
        "suppression": policy.suppression,
        "the order of the quasi-identifiers": [one.name for one in plan.quasi_identifiers],
    }
    for one in plan.attributes:
        section = policy.attributes[one.name]
        parts[f"the type of column '{one.name}'"] = one.column.kind.value
        parts[f"the role of column '{one.name}'"] = [section.role.value, section.show.value, section.nulls]
        if one.hierarchy is not None:
            parts[f"the hierarchy of column '{one.name}'"] = hierarchy_digest(one.name, one.hierarchy)
    return {**describe_plan(party), **{name: digest_part(part) for name, part in parts.items()}}


def describe_plan(party: Party) -> dict[str, str]:
    """Digest the version and the parts of the plan that must be the same everywhere."""
    parts: dict[str, Any] = {
        "the version of sqlanon": __version__,
        "the plan's sites": list(party.plan.names),
        **{f"the plan's {name}": part for name, part in party.plan.model_dump(mode="json", exclude={"sites"}).items()},
    }
    return {name: digest_part(part) for name, part in parts.items()}


def compare(described: Mapping[str, Any]) -> list[str]:
    """Say what differs, with the names of the sites that differ from the first."""
    first, *others = described
    problems: list[str] = []
    names = dict.fromkeys(name for parts in described.values() for name in _names(parts))
    for name in names:
        differing = [site for site in others if _part(described[site], name) != _part(described[first], name)]
        if differing:
            problems.append(_sentence(name, first, differing))
    return problems


def _names(parts: Any) -> Sequence[str]:
    return list(parts) if isinstance(parts, dict) else []


def _part(parts: Any, name: str) -> Any:
    return parts.get(name) if isinstance(parts, dict) else None


def _sentence(name: str, first: str, differing: Sequence[str]) -> str:
    sites = ", ".join(f"'{site}'" for site in differing)
    verb = "differs" if len(differing) == 1 else "differ"
    return f"Site{'' if len(differing) == 1 else 's'} {sites} {verb} from site '{first}' in {name}; make them the same."


def digest_part(part: Any) -> str:
    """Digest a part, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(part, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
