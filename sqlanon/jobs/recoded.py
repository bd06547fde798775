"""Input and output of a frozen recoding, its columns as SQL, and the classes of its rows that violate a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.models import PrivacyModel
from sqlanon.releases.rules.two_step import ByRepresentative, ByRuleId, PartNames, Representatives
from sqlanon.sql import Expression, Identifier, Relation, Statement, free_name, macro
from sqlanon.values.expressions import as_sensitive, double_of, text_of_sensitive
from sqlanon.verification.table_check import NO_NUMBER, CountedRows, named_groups


@dataclass(frozen=True)
class RecodedAttribute:
    """A quasi-identifier, with the kind of its hierarchy and the levels above the value, if it has one.

    columns: of the release, that show it.
    """

    name: str
    type: str
    show: str
    hierarchy: str | None
    height: int | None
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Recoded:
    """Input and output of a frozen recoding.

    signature: names and types of all columns of the source, as the database writes them; columns: of the release, in
    its order; quasi_identifiers: those of them that show regions; attributes: what they show; parts: the recoding in
    two parts, if it has them; sensitive: the names of sensitive columns; kind, owner: of the source, as the server's
    tables have them; trusts_owner: whether the policy does; person: the column of the recoding that says whose row it
    is, where releases are entered in an account; no release has it.
    """

    select: str
    source: Relation
    signature: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    quasi_identifiers: tuple[str, ...]
    attributes: tuple[RecodedAttribute, ...]
    parts: ByRuleId | ByRepresentative | None
    sensitive: tuple[str, ...]
    kind: str
    owner: str
    trusts_owner: bool
    person: Column | None = None

    @property
    def class_column(self) -> Identifier:
        """The column of staged rows that tells their classes apart."""
        return class_column_name(self.columns)

    @property
    def regions(self) -> list[Column]:
        return [column for column in self.columns if column.name in self.quasi_identifiers]

    @property
    def rest(self) -> list[Column]:
        return [column for column in self.columns if column.name not in self.quasi_identifiers]

    @property
    def carried(self) -> list[Column]:
        """The columns that narrow rows have: the rest, and whose row it is."""
        return [*self.rest, *self._of_person]

    @property
    def recoding(self) -> list[Column]:
        """The columns of rows with what they show, and with whose row it is."""
        return [*self.columns, *self._of_person]

    @property
    def _of_person(self) -> list[Column]:
        return [] if self.person is None else [self.person]


def class_column_name(columns: Sequence[Column]) -> Identifier:
    """A name for the class of a row that none of its columns has."""
    return unused_name(columns, "sqlanon_class")


def mask_column_name(columns: Sequence[Column]) -> Identifier:
    """A name for the mask of a row: which of its columns show a star whatever its rule shows."""
    return unused_name(columns, "sqlanon_mask")


def representatives_name(columns: Sequence[Column]) -> Representatives:
    """Name the table and the columns in which a procedure keeps the rows that stand for their classes."""
    address = unused_name(columns, "sqlanon_address")
    keys = tuple(unused_name(columns, f"sqlanon_key_{number}") for number, _ in enumerate(columns, start=1))
    return Representatives(Relation("sqlanon_chosen", "pg_temp"), class_column_name(columns), address, keys)


def unused_name(columns: Sequence[Column], wanted: str) -> Identifier:
    return free_name(wanted, [column.name for column in columns])


def cast_columns(columns: Sequence[Column]) -> list[Expression]:
    """Columns in the types that a release has them in, which are those under domains."""
    return [macro("jobs.in_its_type", Identifier(column.name), Markup(column.type)) for column in columns]


def names_of(columns: Sequence[Column]) -> list[Identifier]:
    return [Identifier(column.name) for column in columns]


def columns_of(alias: str, columns: Sequence[Column]) -> list[Expression]:
    """Columns of a row that is called `alias`."""
    return names_in(alias, names_of(columns))


def names_in(alias: str, names: Sequence[Identifier]) -> list[Expression]:
    """Columns of a row that is called `alias`, by their names."""
    return [macro("relations.column", Markup(alias), name) for name in names]


def part_names(columns: Sequence[Column]) -> PartNames:
    """Names for what the two parts of a recoding add, beside the columns that it gives."""
    return PartNames(class_column_name(columns), mask_column_name(columns), representatives_name(columns))


def failing_queries(
    engine: Engine,
    staging: tuple[Callable[[str | None], CountedRows], Identifier],
    columns: Sequence[Column],
    models: Sequence[PrivacyModel],
    rows: tuple[int, Expression],
) -> list[Statement]:
    """A query for each sensitive attribute; no model may need a hierarchy.

    staging: the rows by the sensitive attribute that is looked at, if one is, and their column with the number of the
    class; columns: of the release.
    rows: the most that there may be, and SQL for how many there are.
    """
    named, statements = {column.name: column for column in columns}, []
    for name, judged in by_attribute(models).items():
        column, counted = None if name is None else named[name], staging[0](name)
        groups = named_groups(column is not None, rows[0], counted=rows[1])
        statement = engine.render(
            "jobs/list_failing",
            staging=counted.table,
            times=counted.times,
            class_column=staging[1],
            measures=[model.measure(engine.render, groups) for model in judged],
            **sensitive_values(engine, column, judged),
        )
        statements.append(statement)
    return statements


def by_attribute(models: Sequence[PrivacyModel]) -> dict[str | None, list[PrivacyModel]]:
    """The models by the sensitive attribute that they look at."""
    grouped: dict[str | None, list[PrivacyModel]] = {}
    for model in models:
        grouped.setdefault(model.attribute, []).append(model)
    return grouped


def sensitive_values(engine: Engine, column: Column | None, models: Sequence[PrivacyModel]) -> dict[str, Any]:
    """Return the values that templates interpolate of a sensitive attribute that models look at, if there is one."""
    if column is None:
        return {"sensitive": None}
    numeric, texts = column.kind.is_numeric, any(model.needs_texts for model in models)
    return {
        "sensitive": as_sensitive(engine, column, Markup(Identifier(column.name))),
        "value": double_of(engine.render, Markup(Identifier("v")), column.kind) if numeric else NO_NUMBER,
        "text": text_of_sensitive(engine, column) if texts else None,
        "levels": [],
        "hierarchy": None,
        "whole": None,
    }
