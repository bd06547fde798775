"""A population in another database, brought beside the source before anything is planned with it.

Its rows are counted where they are, by the quasi-identifiers alone, and only these combinations with their numbers
come, once a session. Beside the source each is written as often as it was counted, so that all else is as with a
population that is a table there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.dialects import find_dialect
from sqlanon.engines.embedded import are_same_database
from sqlanon.errors import AccessError, PolicyError
from sqlanon.plan.opening import open_table
from sqlanon.plan.trust import IN_POLICY
from sqlanon.policy import Policy, PopulationPlace, Role
from sqlanon.sql import Identifier, Relation
from sqlanon.values.digest import table_digest
from sqlanon.work.carried_classes import carry_classes
from sqlanon.work.workspace import TemporaryWorkspace


@dataclass(frozen=True)
class Brought:
    """A population in the session of the source: `table` of its rows, `classes` in number, and the digest of these."""

    table: Relation
    rows: int
    classes: int
    digest: str


_BROUGHT: WeakKeyDictionary[Engine, dict[tuple[str, tuple[str, ...]], Brought]] = WeakKeyDictionary()
"""The populations that each open session holds, by their places and columns."""


def bring_population(policy: Policy, place: PopulationPlace, engine: Engine) -> Brought:
    """Bring the population that models look at, unless the session has it already.

    Raises PolicyError where there is no such table, a column has no counterpart in the source's database, or an engine
    gives or takes no classes, and AccessError where nobody can connect.
    """
    if policy.source.url is not None and are_same_database(place.url, policy.source.url):
        raise PolicyError(f"privacy: {place} is in the source's database: write population: {place.table}.")
    names = tuple(name for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER)
    held = _BROUGHT.setdefault(engine, {})
    known = held.get((str(place), names))
    if known is None or engine.resolve(known.table) is None:
        known = held[str(place), names] = _bring(policy, place, engine, names)
    return known


def _bring(policy: Policy, place: PopulationPlace, engine: Engine, names: Sequence[str]) -> Brought:
    dialect = find_dialect(place.url)
    for one in (engine.traits, dialect):
        if one is not None:
            one.copies_rows.require("privacy: a population in another database: ")
    read_only = dialect is not None and dialect.keeps_temporary_tables
    with connect(place.url, replace(engine.limits, places=()), read_only=read_only) as there:
        trusts = policy.trust == "owner"
        try:
            with open_table(there, place.table, trusts_owner=trusts, remedy=IN_POLICY) as table:
                columns = [column for column in there.columns(table) if column.name in names]
                classes, members = carry_classes(there, table, columns, engine)
        except (PolicyError, AccessError) as error:
            raise type(error)(f"privacy: the population {place}: {error}") from None
    return _spread(engine, classes, [Identifier(column.name) for column in columns], Identifier(members))


def _spread(engine: Engine, classes: Relation, columns: Sequence[Identifier], members: Identifier) -> Brought:
    """Write a row for each member of the classes."""
    digest, (number,) = table_digest(engine, classes), engine.query_one("count_rows", table=classes)
    table = TemporaryWorkspace(engine).table("members")
    engine.run("plan/create_members", population=table, classes=classes, columns=columns, members=members)
    engine.run("work/publish/drop_table", table=classes)
    known = engine.resolve(table) or table
    engine.analyze(known)
    (rows,) = engine.query_one("count_rows", table=known)
    return Brought(known, int(rows), int(number), digest)


def note_of_population(policy: Policy, engine: Engine) -> str | None:
    """Say which population a run held classes against, where it came from another database; None elsewhere."""
    place = policy.population_elsewhere
    if place is None:
        return None
    brought = bring_population(policy, place, engine)
    return (
        f"The population {place} was read once, at the start: {brought.rows:,} rows of {brought.classes:,} combinations"
        f" of quasi-identifiers, with the digest {brought.digest}."
    )
