"""Tables and columns by the names that people write, with the nearest right name for a wrong one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

from sqlanon.catalog.tables import FALLBACK_PREFIX, TABLE_NAMES, VERSION_TABLE
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.sql import Relation
from sqlanon.support.suggest import did_you_mean

_OF_CATALOGS = (VERSION_TABLE, "work_tables", "rule_sets")  # the schema that has them all is a catalog's
_STRAY = {FALLBACK_PREFIX + table for table in TABLE_NAMES}
_OWN = re.compile(f"w_[0-9a-f]{{8}}_|{FALLBACK_PREFIX}")  # how tables of runs begin, and of a catalog without a schema


_FILES: WeakKeyDictionary[Engine, dict[Relation, str]] = WeakKeyDictionary()
"""The files that open sessions read, by the relations of their rows."""


def call_by_file(engine: Engine, relation: Relation, path: str) -> None:
    """Let messages about a relation name the file that it has the rows of."""
    _FILES.setdefault(engine, {})[relation] = path


def name_for_people(engine: Engine, relation: Relation) -> str:
    """Write the name by which people know a relation: that of its file, or of the table, with its schema."""
    return _FILES.get(engine, {}).get(relation) or ".".join(relation.parts[-2:])


def find_table(engine: Engine, text: str) -> Relation:
    """The table as the database knows it. Raises PolicyError, with the nearest names, if there is none."""
    relation = engine.resolve(Relation.parse(text))
    if relation is None:
        raise PolicyError(f"T{unknown_table(engine, text)[1:]}")
    return relation


def unknown_table(engine: Engine, text: str) -> str:
    """A sentence that offers the tables nearest in name, written with as many parts as the unknown one."""
    parts = Relation.parse(text).parts
    names = sorted({".".join(relation.parts[-len(parts) :]) for relation in _offered(engine.relations())})
    offer = did_you_mean(".".join(parts), names) or "the database has no table that the session may see."
    return f"there is no table '{text}'; {offer}"


def is_of_a_catalog(engine: Engine, table: Relation) -> bool:
    """Tell whether a table is, or would be, in a catalog's schema, or has the name of a catalog's table elsewhere."""
    if table.name in _STRAY:
        return True
    return all(engine.resolve(table.sibling(name)) is not None for name in _OF_CATALOGS)


def _offered(relations: Sequence[Relation]) -> list[Relation]:
    """The tables that are not the program's own: neither a catalog's, nor a run's on its way."""
    homes = [{r.sibling("") for r in relations if r.name == name} for name in _OF_CATALOGS]
    own = set.intersection(*homes)
    return [r for r in relations if r.sibling("") not in own and not _OWN.match(r.name)]


def require_columns(engine: Engine, table: Relation, wanted: Iterable[str]) -> None:
    """Raises PolicyError that lists every column the table lacks, each with the nearest names."""
    names = [column.name for column in engine.columns(table)]
    missing = [name for name in dict.fromkeys(wanted) if name not in names]
    if missing:
        shown = name_for_people(engine, table)
        raise PolicyError([f"{shown} has no column '{name}'; {did_you_mean(name, names)}" for name in missing])
