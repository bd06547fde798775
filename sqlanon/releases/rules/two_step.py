"""A recoding in two parts: rows are narrow until what they show is joined to them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.sql import Expression, Identifier, Relation


@dataclass(frozen=True)
class Masked:
    """The columns of a quasi-identifier that show a star in some rows, or NULL where these `are_null`."""

    columns: tuple[Identifier, ...]
    are_null: bool = False


@dataclass(frozen=True)
class ByRuleId:
    """Rows are placed by the rules they fall under.

    assigning: a SELECT of every row's rule, as an integer, of its mask, and of its columns that are released as they
    are. A mask tells which of the quasi-identifiers `masked` show a star, or NULL, whatever the rule shows; it is empty
    where none does.
    showing: a SELECT of that integer and of what its rule shows; no two rules show the same.
    is_starred: whether a row `s` of the source has a mask that isn't empty; None where no row can.
    """

    assigning: str
    showing: str
    is_starred: Expression | None
    masked: tuple[Masked, ...]


@dataclass(frozen=True)
class Representatives:
    """Rows of a table that stand for their classes, by their addresses.

    table: where they are; class_column, address: its columns. keys: names for their keys, one for each attribute.
    """

    table: Relation
    class_column: Identifier
    address: Identifier
    keys: tuple[Identifier, ...]


@dataclass(frozen=True)
class PartNames:
    """Names for what the two parts of a recoding add to its columns: the class of a row, its mask, representatives."""

    class_column: Identifier
    mask: Identifier
    representatives: Representatives


@dataclass(frozen=True)
class ByRepresentative:
    """Rows are placed by keys that stand for what they show, which is worked out for a row of each class.

    assigning: a SELECT of every row's address, of its keys, and of its columns that are released as they are.
    showing: a SELECT of classes, and of the keys of their representatives and what these show.
    keys: columns of both.
    """

    assigning: str
    showing: str
    keys: tuple[Identifier, ...]
