"""Whose code runs when a source is read: on PostgreSQL in the name of the role that reads."""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy
from sqlanon.sql import Relation

_SHOWN = 5


def hold_trusted(policy: Policy, engine: Engine, source: Relation) -> None:
    """Keep the source from being replaced until the transaction ends, and refuse code of others in it.

    Raises:
        PolicyError: reading it may run code of roles that are not trusted, and the policy does not trust its owner.
    """
    engine.hold(source)
    require_trusted(policy, engine, source)


def require_trusted(policy: Policy, engine: Engine, source: Relation) -> None:
    """Refuse a source that runs code of others when it is read, unless the policy trusts its owner.

    Raises:
        PolicyError: with the names of what was seen.
    """
    problems = [] if policy.trust == "owner" else engine.code_of_others(source)
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise PolicyError(refusal(source, "; ".join(problems[:_SHOWN]) + more))


def refusal(source: Relation, problems: str) -> str:
    """The message about a source whose reading runs code of others."""
    return (
        f"Reading {source} would run code of others with this role's rights: {problems}."
        " Nothing was read. Have this role or a superuser own them, or trust them by `trust: owner` in the policy."
    )
