"""Where the procedure of a job stages rows before they are checked and published.

Sorting and writing what all rows show is most of what recoding costs. So rows are staged narrow where they can be, by
the rules that they fall under or by hashes of what they show, and what classes show is joined to them when it is looked
at. Other rows are staged with what they show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.comparing import comparable, exact
from sqlanon.engines.base import Column, Engine, Kind
from sqlanon.jobs.recoded import (
    Recoded,
    cast_columns,
    columns_of,
    mask_column_beside,
    name_beside,
    names_of,
    representatives_beside,
)
from sqlanon.rules.parts import PlacedRules
from sqlanon.sql import Identifier, Relation, Text, expression
from sqlanon.verification.verify import CountedRows

STAGING = Relation("sqlanon_staging", "pg_temp")  # the rows as they would be published
_PLACED = Relation("sqlanon_placed", "pg_temp")  # their classes, and what they keep
_FACES = Relation("sqlanon_faces", "pg_temp")  # what classes show
_RECODING = Relation("sqlanon_recoding", "pg_temp")  # a view of the rules' statement that is being worked out
_MASKED = Relation("sqlanon_masked", "pg_temp")  # rows with their rules and masks
_KINDS = Relation("sqlanon_kinds", "pg_temp")  # the different ones, and what they show
_NUMBERED = Relation("sqlanon_numbered", "pg_temp")  # their classes


@dataclass(frozen=True)
class Staging:
    """The staged rows of a recoding."""

    engine: Engine
    recoded: Recoded

    @property
    def classed(self) -> Relation:
        """The rows with the numbers of their classes."""
        return STAGING if self.recoded.parts is None else _PLACED

    def groups(self, attribute: str | None) -> CountedRows:
        """What verification is to group; narrow rows are counted before what they show is joined to them."""
        if self.recoded.parts is None:
            return CountedRows(STAGING)
        named = next((column for column in self.recoded.rest if column.name == attribute), None)
        times = name_beside(self.recoded.columns, "sqlanon_times")
        text = self._rendered(
            "jobs/count_placed",
            regions=columns_of("f", self.recoded.regions),
            sensitive=None if named is None else Identifier(named.name),
            value=None if named is None else self._key("p", named),
            times=times,
        )
        return CountedRows(expression("(\n{text_}\n) AS t", text_=text), times)

    def values(self) -> dict[str, Any]:
        """What the templates of a procedure interpolate."""
        opening = self.engine.render("jobs/open_view", view=_RECODING).text
        return {
            "staging": STAGING,
            "classed": self.classed,
            "class_column": self.recoded.class_column,
            "columns": Markup(", ").join(columns_of("r", self.recoded.columns)),
            "view": _RECODING,
            "opening": Text(opening + "\n"),
            "staged": self._staged(),
        }

    def _staged(self) -> dict[str, Any]:
        """What is told of the way in which rows are staged."""
        parts = self.recoded.parts
        if parts is None:
            return {"how": "wide", "recode": self._recode()}
        narrow = {"rows": _PLACED, "faces": _FACES, "columns": self._joined_columns}
        if isinstance(parts, PlacedRules):
            return {"how": "placed", **narrow, **self._placed(parts)}
        return {"how": "represented", **narrow, **self._represented()}

    def _placed(self, rules: PlacedRules) -> dict[str, Any]:
        """By the rules that rows fall under; those with a mask by what they show, which may be what a rule shows."""
        names, regions = names_of(self.recoded.regions), columns_of("f", self.recoded.regions)
        places = {name: place for place, name in enumerate(rules.masked, start=1)}
        parts = {
            "masked": _MASKED,
            "kinds": _KINDS,
            "numbered": _NUMBERED,
            "mask": mask_column_beside(self.recoded.columns),
            "names": names,
            "shown": [{"name": n, "value": v, "place": places.get(n)} for n, v in zip(names, regions, strict=True)],
            "keys": {"f": regions, "k": columns_of("k", self.recoded.regions)},
        }
        rows = self._rendered("jobs/number_rows", **parts, rest=columns_of("r", self.recoded.rest))
        return {
            "show": self._show(ordered=False),
            "place": self._place(Markup(_RECODING)),
            "mask": self._rendered("jobs/mask_rows", **parts, rest=columns_of("r", self.recoded.rest)),
            "list": self._rendered("jobs/list_kinds", **parts),
            "add": self._rendered("jobs/add_faces", **parts),
            "number": self._rendered("jobs/number_kinds", **parts),
            "place_masked": self._place(expression("(\n{rows}\n)", rows=rows)),
            "tables": {"masked": _MASKED, "kinds": _KINDS, "numbered": _NUMBERED},
        }

    def _represented(self) -> dict[str, Any]:
        """By hashes of what rows show; the row with the least address stands for its class."""
        by = representatives_beside(self.recoded.columns)
        parts = {
            "chosen": by.table,
            "address": by.address,
            "check": name_beside(self.recoded.columns, "sqlanon_check"),
            "keys": columns_of("r", self.recoded.regions),
        }
        rest = cast_columns(self.recoded.rest)
        return {
            "place": self._rendered("jobs/hash_rows", **parts, rest=rest, order=self._order),
            "choose": self._rendered("jobs/choose_rows", **parts),
            "show": self._show(ordered=True),
            "alike": self._rendered("jobs/count_alike", **parts, shown=columns_of("f", self.recoded.regions)),
            "chosen": by.table,
            "source": self.recoded.source,
        }

    # --- statements

    def _rendered(self, template: str, **values: Any) -> Markup:
        common = {"placed": _PLACED, "faces": _FACES, "view": _RECODING, "class_column": self.recoded.class_column}
        return Markup(self.engine.render(template, **common, **values).text)

    def _place(self, rows: Markup) -> Markup:
        return self._rendered("jobs/create_placed", rows=rows, rest=cast_columns(self.recoded.rest), order=self._order)

    def _show(self, *, ordered: bool) -> Markup:
        return self._rendered("jobs/create_faces", regions=cast_columns(self.recoded.regions), ordered=ordered)

    def _recode(self) -> Markup:
        keys, columns = columns_of("r", self.recoded.regions), cast_columns(self.recoded.columns)
        return self._rendered("jobs/create_staging", staging=STAGING, columns=columns, keys=keys, order=self._order)

    # --- columns

    @property
    def _joined_columns(self) -> list[Markup]:
        """The columns of the release, of classes `f` and narrow rows `p`."""
        regions = set(names_of(self.recoded.regions))
        return [
            expression("{alias}.{c}", alias=Markup("f" if name in regions else "p"), c=name)
            for name in names_of(self.recoded.columns)
        ]

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
