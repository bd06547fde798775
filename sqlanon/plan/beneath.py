"""The table beneath a view that shows columns of one table, row by row, under names of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlanon.engines.base import Engine, RelationType
from sqlanon.errors import PolicyError
from sqlanon.sql import Relation

_NAME = r'(?:"(?:[^"]|"")*"|[^\W\d][\w$]*)'
_QUALIFIED = rf"{_NAME}(?:\.{_NAME})*"
_SOURCE = rf"(?:(?:{_NAME}\.)*\*|{_QUALIFIED})"
_ITEM = rf"{_SOURCE}(?:\s+AS\s+{_NAME})?"
_PLAIN = re.compile(
    rf"\s*SELECT\s+(?P<items>{_ITEM}(?:\s*,\s*{_ITEM})*)"
    rf"\s+FROM\s+(?!ONLY\s)(?P<table>{_QUALIFIED})(?:\s+(?:AS\s+)?(?P<alias>{_NAME}))?\s*;?\s*"
)
_TABLES = (RelationType.TABLE, RelationType.PARTITIONED_TABLE)


@dataclass(frozen=True)
class TableBeneath:
    """A table, and the columns by which a view shows it; of a table itself, its own.

    columns: the table's name of each column, by the view's.
    """

    table: Relation
    columns: dict[str, str]


def table_beneath(engine: Engine, relation: Relation) -> TableBeneath:
    """Find the table that has the rows of a relation: the relation itself, or beneath views one after the other.

    Raises:
        PolicyError: the relation is a copy, has the rows of several tables or some rows of one, or computes columns.
    """
    kind = engine.relation_type(relation)
    if kind is RelationType.VIEW:
        return _beneath_view(engine, relation)
    if kind not in _TABLES:
        raise PolicyError(
            f"{relation} is a {kind.value}, whose rows are those of tables elsewhere: ask of the table itself."
        )
    parent = engine.parent_of(relation)
    if parent is not None:
        raise PolicyError(f"{relation} is a part of {parent}, which has its rows too: ask of {parent}.")
    return TableBeneath(relation, {column.name: column.name for column in engine.columns(relation)})


def _beneath_view(engine: Engine, view: Relation) -> TableBeneath:
    plain = _PLAIN.fullmatch(engine.definition_of(view) or "")
    next_relation = None if plain is None else engine.resolve(Relation(*reversed(_parts(plain["table"])[-3:])))
    if plain is None or next_relation is None:
        raise _refused(view)
    beneath = table_beneath(engine, next_relation)
    names = _shown(plain, next_relation, list(beneath.columns))
    own = [column.name for column in engine.columns(view)]
    if names is None or len(names) != len(own):
        raise _refused(view)
    return TableBeneath(beneath.table, {name: beneath.columns[shown] for name, shown in zip(own, names, strict=True)})


def _shown(plain: re.Match[str], relation: Relation, there: Sequence[str]) -> list[str] | None:
    """Name the columns that a view shows, in their order; None where an item is no column of the relation."""
    called = {relation.name.casefold(), *([] if plain["alias"] is None else [_parts(plain["alias"])[0].casefold()])}
    shown: list[str] = []
    for source in re.findall(rf"({_SOURCE})(?:\s+AS\s+{_NAME})?", plain["items"]):
        if source.endswith("*"):
            shown += there
            continue
        *qualifiers, name = _parts(source)
        column = _column(name, there)
        is_field = bool(qualifiers) and (qualifiers[-1].casefold() not in called or _column(qualifiers[-1], there))
        if column is None or is_field:
            return None
        shown.append(column)
    return shown


def _column(name: str, there: Sequence[str]) -> str | None:
    """The column of that name; where none has it letter by letter, the only one that differs in case."""
    near = [one for one in there if one.casefold() == name.casefold()]
    return name if name in there else near[0] if len(near) == 1 else None


def _parts(text: str) -> list[str]:
    """The names of a qualified name."""
    return [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in re.findall(_NAME, text)]


def _refused(view: Relation) -> PolicyError:
    return PolicyError(
        f"{view} is a view that chooses, joins or computes rows or columns, and what answers about it tell of the"
        " tables beneath can't be audited. Ask of the table, with conditions in the question, or of a view that only"
        " names some of its columns."
    )
