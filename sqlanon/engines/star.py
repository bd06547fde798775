"""A release in the layout of a star: a view that joins rows with their classes by number.

What is read is the view, which has the columns of a flat release. The two tables lie beside it, under names made of its
own: `<name>_rows` and `<name>_classes`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.sql import MAX_IDENTIFIER_BYTES, Identifier, Relation

CLASS_NUMBER = "class_number"  # the column by which rows and classes are joined


@dataclass(frozen=True)
class StarColumn:
    """A column of the view; `is_shown`: it is one of the class, not of the row."""

    name: Identifier
    is_shown: bool


@dataclass(frozen=True)
class Star:
    """The three relations, and the columns of the view in order."""

    view: Relation
    rows: Relation
    classes: Relation
    columns: tuple[StarColumn, ...] = ()

    @classmethod
    def of(cls, release: Relation, columns: Sequence[StarColumn] = ()) -> Star:
        """The star of this name."""
        rows, classes = (release.sibling(f"{release.name}_{part}") for part in ("rows", "classes"))
        return cls(release, rows, classes, tuple(columns))

    @property
    def tables(self) -> tuple[Relation, Relation]:
        return self.rows, self.classes


class Form(StrEnum):
    """The form of the relation that has the name of a release."""

    NOTHING = "nothing"
    TABLE = "table"
    STAR = "star"
    OTHER = "other"


def create_view(engine: Engine, star: Star, *, replace: bool = False) -> None:
    """Make the view; with `replace` let the one that is there read these tables from now on."""
    engine.run(
        "work/publish/create_star_view",
        view=star.view,
        replace=replace,
        rows=star.rows,
        classes=star.classes,
        columns=star.columns,
        number=Identifier(CLASS_NUMBER),
    )


def put_star(engine: Engine, staged: Star, release: Star, old: Form, *, keeps_view: bool) -> None:
    """Let a staged star take a name, in a transaction; `keeps_view`: the old view stays, and reads other tables."""
    engine.run("work/publish/drop_view", view=staged.view)
    if keeps_view:
        create_view(engine, dataclasses.replace(staged, view=release.view), replace=True)
        _drop_tables(engine, release)
    else:
        drop_old(engine, release, old)
    for table, place in zip(staged.tables, release.tables, strict=True):
        engine.run("work/publish/rename_table", table=table, name=Identifier(place.name))
    create_view(engine, dataclasses.replace(release, columns=staged.columns), replace=keeps_view)


def old_tables(release: Star, old: Form) -> tuple[Relation, ...]:
    """The tables of what has the name of a release."""
    return {Form.TABLE: (release.view,), Form.STAR: release.tables}.get(old, ())


def drop_old(engine: Engine, release: Star, old: Form) -> None:
    """Drop what has the name of a release, with the tables that it reads."""
    if old is Form.TABLE:
        engine.run("work/publish/drop_table", table=release.view)
    elif old is Form.STAR:
        engine.run("work/publish/drop_view", view=release.view)
        _drop_tables(engine, release)


def _drop_tables(engine: Engine, star: Star) -> None:
    for table in star.tables:
        engine.run("work/publish/drop_table", table=table)


def name_problems(release: Relation, taken: Sequence[Relation]) -> list[PolicyError]:
    """List the problems of the two tables' names; the tables that are `taken` are of somebody else."""
    star = Star.of(release)
    long = [table.name for table in star.tables if len(table.name.encode()) > MAX_IDENTIFIER_BYTES]
    problems = [
        PolicyError(
            f"The name {release} is too long for the layout star, which makes a table {Identifier(name)} beside it:"
            f" names have {MAX_IDENTIFIER_BYTES} bytes at most."
        )
        for name in long
    ]
    return problems + [
        PolicyError(
            f"The layout star makes a table {table} beside the release, and there is one of this name: choose another"
            " name for the release."
        )
        for table in taken
    ]
