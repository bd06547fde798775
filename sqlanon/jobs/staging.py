"""Where the procedure of a job stages rows before they are checked and published.

Rows of a tree are staged by the rules they fall under, and what the rules show is joined to them when it is looked at:
sorting and writing what all rows show is most of what recoding costs. Other rules are staged with what rows show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.comparing import comparable, exact
from sqlanon.engines.base import Column, Engine, Kind
from sqlanon.rules.select_tree import PlacedRules
from sqlanon.sql import Identifier, Relation, Text, expression, free_name
from sqlanon.verification.verify import CountedRows

STAGING = Relation("sqlanon_staging", "pg_temp")  # the rows as they would be published
_PLACED = Relation("sqlanon_placed", "pg_temp")  # their rules, and what they keep
_FACES = Relation("sqlanon_faces", "pg_temp")  # what rules show
_RECODED = Relation("sqlanon_recoded", "pg_temp")
_HERE = "\0"  # in a statement where the recoding belongs; no name holds it


@dataclass(frozen=True)
class Recoded:
    """What a frozen recoding reads and gives.

    signature: names and types of all columns of the source, as the database writes them; columns: of the release, in
    its order; quasi_identifiers: those of them that show regions; placed: the recoding in two parts, if it has them.
    """

    select: str
    source: Relation
    signature: tuple[str, ...]
    columns: tuple[Column, ...]
    quasi_identifiers: tuple[str, ...]
    placed: PlacedRules | None = None

    @property
    def class_column(self) -> Identifier:
        """The column of staged rows that tells their classes apart."""
        return class_column_beside(self.columns)

    @property
    def regions(self) -> list[Column]:
        return [column for column in self.columns if column.name in self.quasi_identifiers]

    @property
    def rest(self) -> list[Column]:
        return [column for column in self.columns if column.name not in self.quasi_identifiers]


def class_column_beside(columns: Sequence[Column]) -> Identifier:
    """A name for the class of a row that none of its columns has."""
    return free_name("sqlanon_class", [column.name for column in columns])


@dataclass(frozen=True)
class Staging:
    """The staged rows of a recoding."""

    engine: Engine
    recoded: Recoded

    @property
    def classed(self) -> Relation:
        """The rows with the numbers of their classes."""
        return STAGING if self.recoded.placed is None else _PLACED

    def groups(self, attribute: str | None) -> CountedRows:
        """What verification is to group; rows by rules are counted before what they show is joined to them."""
        if self.recoded.placed is None:
            return CountedRows(STAGING)
        named = next((column for column in self.recoded.rest if column.name == attribute), None)
        times = free_name("sqlanon_times", [column.name for column in self.recoded.columns])
        text = self.engine.render(
            "jobs/count_placed",
            placed=_PLACED,
            faces=_FACES,
            class_column=self.recoded.class_column,
            regions=_listed("f", self.recoded.regions),
            sensitive=None if named is None else Identifier(named.name),
            value=None if named is None else self._key("p", named),
            times=times,
        ).text
        return CountedRows(expression("(\n{text_}\n) AS t", text_=Markup(text)), times)

    def values(self) -> dict[str, Any]:
        """What the templates of a procedure interpolate."""
        placed = self.recoded.placed is not None
        return {
            "staging": STAGING,
            "classed": self.classed,
            "class_column": self.recoded.class_column,
            "columns": Markup(", ").join(_listed("r", self.recoded.columns)),
            "recode": self._recode(_RECODED, None) if placed else self._recode(STAGING, self._order),
            "placed": self._placed() if placed else None,
        }

    def _placed(self) -> dict[str, Any]:
        """What it interpolates about rows that are staged by their rules."""
        regions = set(_names(self.recoded.regions))
        columns = [
            expression("{alias}.{c}", alias=Markup("f" if name in regions else "p"), c=name)
            for name in _names(self.recoded.columns)
        ]
        parts = {"class_column": self.recoded.class_column, "recoding": Markup(_HERE)}
        return {
            "rows": _PLACED,
            "faces": _FACES,
            "recoded": _RECODED,
            "columns": columns,
            "place": self._around(
                "jobs/create_placed", **parts, placed=_PLACED, rest=cast_columns(self.recoded.rest), order=self._order
            ),
            "show": self._around(
                "jobs/create_faces", **parts, faces=_FACES, regions=cast_columns(self.recoded.regions)
            ),
            **self._recoded_rows(),
        }

    def _recoded_rows(self) -> dict[str, Any]:
        """About rows of which some show a star where their rule shows more: what they show, and its numbers."""
        regions, rest = (_listed("r", columns) for columns in (self.recoded.regions, self.recoded.rest))
        parts = {
            "class_column": self.recoded.class_column,
            "recoded": _RECODED,
            "faces": _FACES,
            "keys": _listed("f", self.recoded.regions),
            "names": _names(self.recoded.regions),
        }
        return {
            "add": Markup(self.engine.render("jobs/add_faces", **parts, regions=regions).text),
            "assigning": Text(self.engine.render("jobs/place_recoded", **parts, rest=rest).text),
        }

    def _recode(self, table: Relation, order: Sequence[Markup] | None) -> tuple[Text, Text]:
        return self._around(
            "jobs/create_staging",
            staging=table,
            class_column=self.recoded.class_column,
            columns=cast_columns(self.recoded.columns),
            keys=_listed("r", self.recoded.regions),
            order=order,
            recoding=Markup(_HERE),
        )

    @property
    def _order(self) -> list[Markup]:
        """What rows of a class are sorted by: all that they keep, and how equal numbers are written."""
        return [key for column in self.recoded.rest for key in (self._key("r", column), *self._ties(column))]

    def _ties(self, column: Column) -> tuple[Markup, ...]:
        """What tells values apart that compare as equal: two zeros, or decimals that have scales of their own."""
        value = expression("r.{c}", c=Identifier(column.name))
        if column.kind is Kind.FLOAT:
            return exact(self.engine, column, value)[1:]
        if column.kind is Kind.DECIMAL and column.decimals is None:
            return (expression("scale({value})", value=value),)
        return ()

    def _key(self, alias: str, column: Column) -> Markup:
        value = expression("{alias}.{c}", alias=Markup(alias), c=Identifier(column.name))
        return comparable(self.engine, value, column.kind)

    def _around(self, template: str, **values: Any) -> tuple[Text, Text]:
        """What a statement says before the recoding in it, and behind that."""
        before, _, behind = self.engine.render(template, **values).text.partition(_HERE)
        return Text(before), Text(behind)


def cast_columns(columns: Sequence[Column]) -> list[Markup]:
    """Columns in the types that a release has them in, which are those under domains."""
    return [
        expression("CAST(r.{c} AS {type}) AS {c}", c=Identifier(column.name), type=Markup(column.type))
        for column in columns
    ]


def _names(columns: Sequence[Column]) -> list[Identifier]:
    return [Identifier(column.name) for column in columns]


def _listed(alias: str, columns: Sequence[Column]) -> list[Markup]:
    return [expression("{alias}.{c}", alias=Markup(alias), c=name) for name in _names(columns)]
