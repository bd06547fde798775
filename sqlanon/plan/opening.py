"""Tables of people opened for reading: whose code that runs, and whether a release is still what was published."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlanon.engines.base import Engine, RelationType
from sqlanon.engines.publishing import publisher_of
from sqlanon.engines.star import Form, Star
from sqlanon.errors import ProtectionError
from sqlanon.plan.lookup import find_table
from sqlanon.plan.trust import IN_POLICY, reading
from sqlanon.policy import Policy
from sqlanon.sql import Relation

TABLES = (RelationType.TABLE, RelationType.PARTITIONED_TABLE)
TRUST_OWNER = "--trust-owner"


@contextlib.contextmanager
def open_table(
    engine: Engine, text: str, *, trusts_owner: bool = False, remedy: str = TRUST_OWNER, keeps: bool = False
) -> Iterator[Relation]:
    """Find a table, and keep it as it is while it is read inside.

    keeps: whether what is made inside stays; by default it is undone where reading might run code of others.

    Raises PolicyError for an unknown table, and for one whose reading runs code of roles that are not trusted.
    """
    relation = find_table(engine, text)
    with reading(engine, relation, trusts_owner=trusts_owner, remedy=remedy, keeps=keeps):
        yield relation


@contextlib.contextmanager
def open_source_table(engine: Engine, policy: Policy, *, keeps: bool = False) -> Iterator[Relation]:
    """Find a policy's source, and keep it as it is while it is read inside; keeps, and raises, as `open_table` does."""
    trusts, name = policy.trust == "owner", policy.source.table or ""
    with open_table(engine, name, trusts_owner=trusts, remedy=IN_POLICY, keeps=keeps) as source:
        yield source


@contextlib.contextmanager
def open_release_table(
    engine: Engine, policy: Policy, table: str | None = None, *, keeps: bool = False
) -> Iterator[Relation]:
    """Find a policy's release, or another table in its place, and keep it as it is while it is read inside.

    `trust: owner` is about the source alone. keeps: as in `open_table`.

    Raises:
        PolicyError: there is no such table, or reading it runs code of roles that are not trusted.
        ProtectionError: what has the name of the release is not what a run publishes, such as a view, and was not
            named as `table`.
    """
    release = find_table(engine, table or policy.release.table or "")
    ending = engine.transaction if keeps else engine.undone
    with ending() if engine.traits.runs_code_of_others else contextlib.nullcontext():
        engine.hold(release)
        is_star = is_star_of(engine, policy, release)
        if table is None and not is_star and (other := other_kind(engine, release)) is not None:
            hint = f" If this {other} is what you mean, name it by --table."
            raise ProtectionError(replaced_sentence(str(release), other) + hint)
        with reading(engine, *(Star.of(release).tables if is_star else (release,)), remedy=None):
            yield release if is_star else publisher_of(engine).rows_of(release)


def is_star_of(engine: Engine, policy: Policy, relation: Relation) -> bool:
    """Tell whether a relation is the view of a star, and the policy publishes stars."""
    return policy.release.layout == "star" and publisher_of(engine).form(relation) is Form.STAR


def other_kind(engine: Engine, relation: Relation) -> str | None:
    """The kind of a relation that is not what a run publishes; None for a table, or the view that stands for one."""
    kind = engine.relation_type(relation)
    return None if kind in TABLES or publisher_of(engine).form(relation) is Form.TABLE else kind.value


def replaced_sentence(place: str, other: str) -> str:
    """The message about what took the place of a release."""
    return (
        f"{place} is a {other} now, and what was released is a table. What a {other} shows may be different rows at"
        " the next look, so it was not read: drop it and run again, or name the table by --table."
    )
