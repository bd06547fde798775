"""Code of others that runs when a source is read: on PostgreSQL in the name of the role that reads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy
from sqlanon.results.source_facts import Origin
from sqlanon.sql import Relation

_SHOWN = 5
IN_POLICY = "`trust: owner` in the policy"


def origin_of(engine: Engine, source: Relation) -> Origin:
    """The origin of a source as it is now."""
    return Origin(engine.relation_type(source).value, engine.owner_of(source))


def hold_trusted(policy: Policy, engine: Engine, source: Relation, pinned: Origin | None = None) -> None:
    """Keep the source from being replaced until the transaction ends, and refuse code of others in it.

    pinned: what the source has to be, though the policy trusts its owner.

    Raises:
        PolicyError: reading it may run code of roles that are not trusted, and the policy does not trust its owner; or
            it is not what it has to be.
    """
    engine.hold(source)
    if pinned is not None and origin_of(engine, source) != pinned:
        raise PolicyError(
            f"{source} is not the {pinned} that it was when the rules were made; nothing was published. See who"
            " replaced it, run the policy again, and freeze that run."
        )
    require_trusted(policy, engine, source)


@contextlib.contextmanager
def reading(
    engine: Engine, *tables: Relation, trusts_owner: bool = False, remedy: str | None = IN_POLICY, keeps: bool = False
) -> Iterator[None]:
    """Keep tables as they are while they are read inside, and refuse code of others in them.

    remedy: how to trust their owner; None where nobody may.
    keeps: whether what is made inside stays; by default it is undone.

    Raises:
        PolicyError: reading them may run code of roles that are not trusted, and `trusts_owner` is not set.
    """
    if not engine.traits.runs_code_of_others:
        yield
        return
    with engine.transaction() if keeps else engine.undone():
        for table in tables:
            engine.hold(table)
            _refuse_others(engine, table, trusts_owner, remedy)
        yield


def require_trusted(policy: Policy, engine: Engine, source: Relation) -> None:
    """Refuse a source that runs code of others when it is read, unless the policy trusts its owner.

    Raises:
        PolicyError: with the names of what was seen.
    """
    _refuse_others(engine, source, policy.trust == "owner", IN_POLICY)


def _refuse_others(engine: Engine, table: Relation, trusts_owner: bool, remedy: str | None) -> None:
    problems = [] if trusts_owner else engine.code_of_others(table)
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise PolicyError(refusal(table, "; ".join(problems[:_SHOWN]) + more, remedy))


def refusal(source: Relation, problems: str, remedy: str | None = IN_POLICY) -> str:
    """The message about a table whose reading runs code of others."""
    trusting = "" if remedy is None else f", or trust them by {remedy}"
    return (
        f"Reading {source} would run code of others with this role's rights: {problems}."
        f" Nothing was read. Have this role or a superuser own them{trusting}."
    )
