"""Tables that commands make for people: new ones, which replace nothing."""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import publisher_of
from sqlanon.errors import PolicyError
from sqlanon.sql import Relation


def find_new_table(engine: Engine, table: str, option: str) -> Relation:
    """Find the place of a table that an option of a command names.

    Raises PolicyError where the table exists or can't be made for its owner alone, AccessError where the session may
    not make it.
    """
    engine.traits.keeps_tables_private.require(f"{option}: ")
    named = Relation.parse(table)
    place = engine.traits.stored(named)
    if engine.resolve(named) is not None:
        raise PolicyError(f"{place} exists, and {option} replaces nothing: choose another name, or drop it.")
    if problems := publisher_of(engine).problems(place, replace=False):
        raise problems[0]
    return place
