"""Layout of a coded row: the bits of each attribute's code in its words, and the SQL that reads the code there."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.hierarchies import HierarchyTable
from sqlanon.hierarchies.limits import Opened
from sqlanon.plan.plan import Attribute
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, Renderer, macro

WORD_BITS = 62  # of a signed BIGINT: codes stay positive, and a bit is left for a carry
MOST_BITS = 62  # codes above 0 that have a bit of their own in a BIGINT
SHORT = 31  # bits of an INTEGER


@dataclass(frozen=True)
class Coding:
    """The coding of an attribute's values: NULL is 0, values start at 1 and keep their order.

    Integers in a narrow range are `value - origin + 1`, and whole multiples of a unit `value * scale - origin + 1`;
    everything else is looked up in `dictionary` (`value`, `code` and, where equal values can look different, the `key`
    they are told apart by). With a hierarchy the dictionary is its dimension table and the code is a path (one digit a
    level).

    Kept values that are nearly all different are not coded (`is_aside`): the code is the number of the row, one for all
    such columns, and `dictionary` is the table of these values, a column for each attribute.

    opened: labels of the hierarchy's groups that hold a limit of top or bottom coding.
    scale: how many units make one; None where codes aren't units. Quasi-identifiers alone are coded in units.
    """

    attribute: Attribute
    bits: int
    leaves: int  # distinct positions, NULL's not counted
    origin: int | None = None
    scale: int | None = None
    dictionary: Relation | None = None
    keyed: bool = False
    hierarchy: HierarchyTable | None = None
    opened: tuple[Opened, ...] = ()
    is_aside: bool = False

    @property
    def is_looked_up(self) -> bool:
        """Tell whether codes are those of values, in a dictionary."""
        return self.dictionary is not None and not self.is_aside

    @property
    def before(self) -> RedactedValue:
        """One less than what code 1 stands for, in units where there are any; for statements."""
        return RedactedValue((self.origin or 0) - 1)

    def value_of(self, code: Expression) -> Expression:
        """The value of a code that is not looked up."""
        return self.value_of_whole(macro("codes.whole", code, self.before))

    def value_of_whole(self, whole: Expression) -> Expression:
        """The value that is worth so many units; an integer is one itself."""
        return macro("codes.value", whole, self.scale, Markup(self.attribute.column.type))

    def whole_of(self, render: Renderer, value: Expression) -> Expression:
        """Write the number of units that a value is worth."""
        return render.macro("units", value, self.scale)


@dataclass(frozen=True)
class Field:
    """An attribute's place in the coded row: `bits` bits from bit `shift` of word `word`."""

    number: int
    coding: Coding
    word: int
    shift: int

    @property
    def attribute(self) -> Attribute:
        return self.coding.attribute

    @property
    def value_column(self) -> Identifier:
        """The column of the dictionary that has the values."""
        return Identifier(f"value_{self.number}" if self.coding.is_aside else "value")

    @property
    def mask(self) -> int:
        """The field's bits, in place."""
        return ((1 << self.coding.bits) - 1) << self.shift

    @property
    def column(self) -> Identifier:
        """The word that holds the field."""
        return word_column(self.word)

    def code(self, alias: Identifier) -> Expression:
        """The field's code, read from a coded row `alias`."""
        return macro("bits.field", self.column, self.mask, self.shift, alias)

    def short_code(self, alias: Identifier) -> Expression:
        """The code as an INTEGER if it fits: the number of a row is joined with a table that has as many."""
        code = self.code(alias)
        return macro("bits.short", code) if self.coding.bits <= SHORT else code


def word_column(word: int) -> Identifier:
    return Identifier(f"p{word}")


def place(codings: list[Coding]) -> tuple[list[Field], int]:
    """Pack the codings into as few words as first-fit by decreasing width finds; fields keep the codings' order."""
    free: list[int] = []
    places: dict[int, tuple[int, int]] = {}
    aside = [number for number, coding in enumerate(codings) if coding.is_aside]
    for number in sorted(range(len(codings)), key=lambda i: -codings[i].bits):
        if number in aside[1:]:
            continue
        bits = codings[number].bits
        word = next((w for w, room in enumerate(free) if room >= bits), len(free))
        if word == len(free):
            free.append(WORD_BITS)
        places[number] = (word, WORD_BITS - free[word])
        free[word] -= bits
    if aside:
        places |= dict.fromkeys(aside[1:], places[aside[0]])  # of a row's number there is one
    return [Field(i, coding, *places[i]) for i, coding in enumerate(codings)], max(1, len(free))
