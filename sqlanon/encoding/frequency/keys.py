"""The keys of equivalence classes: path codes whose digits are spread so that generalizing is one AND.

A path code has one digit a level. A key holds the coarse digits of all attributes in the high bits of its first word
and the fine ones in the low bits of its last: the words that a generalization blanks out need not be grouped by, and
tuples sorted by key are sorted for every generalization, nearly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlanon.encoding.axes import Ranged
from sqlanon.encoding.fields import WORD_BITS, Field, word_column
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.sql import Expression, Identifier, Relation, macro


@dataclass(frozen=True)
class Digit:
    """A digit's place: `bits` bits from bit `shift` of word `word` of the key."""

    word: int
    shift: int
    bits: int

    @property
    def mask(self) -> int:
        """The digit's bits, in place."""
        return ((1 << self.bits) - 1) << self.shift


@dataclass(frozen=True)
class Dimension(Ranged):
    """A quasi-identifier of the lattice.

    digits: those of its path code, from the value's up.
    steps: the level of its hierarchy that each level of the lattice stands for.
    """

    number: int
    field: Field
    digits: tuple[Digit, ...]
    steps: tuple[int, ...]

    @property
    def height(self) -> int:
        """Its greatest level, at which all values are `*`."""
        return len(self.digits)

    @property
    def name(self) -> str:
        return self.field.attribute.name

    @property
    def table(self) -> Relation | Expression:
        """Its dimension table, to select from with an alias."""
        assert self.field.coding.hierarchy is not None
        return self.field.coding.hierarchy.table

    @property
    def shifts(self) -> tuple[int, ...]:
        """The bits that a code is shifted to the right to get its group, for each level."""
        return _shifts(self.field, self.steps)

    def mask_in_row(self, level: int) -> int:
        """The bits of the coded row's word that tell the groups of a level apart."""
        lower = self.shifts[level]
        return ((1 << self.field.coding.bits) - (1 << lower)) << self.field.shift


@dataclass(frozen=True)
class Keys:
    """The layout of keys."""

    dimensions: tuple[Dimension, ...]
    words: int

    @property
    def columns(self) -> tuple[Identifier, ...]:
        """The key's words in work tables: k0, k1, …"""
        return tuple(Identifier(f"k{word}") for word in range(self.words))

    def masks(self, node: Node) -> tuple[int, ...]:
        """Build the mask of each word that keeps the digits of a generalization."""
        masks = [0] * self.words
        for dimension, level in zip(self.dimensions, node, strict=True):
            for digit in dimension.digits[level:]:
                masks[digit.word] |= digit.mask
        return tuple(masks)

    def of_node(self, node: Node) -> list[Expression]:
        """The key of a generalization, read from the words of a finer one; never empty."""
        return [macro("bits.masked", column, mask) for column, mask in self._kept(node)]

    def kept_columns(self, node: Node) -> list[Identifier]:
        """The words that the key of a generalization is read from, in the order of `of_node`."""
        return [column for column, _ in self._kept(node)]

    def _kept(self, node: Node) -> list[tuple[Identifier, int]]:
        pairs = list(zip(self.columns, self.masks(node), strict=True))
        return [(column, mask) for column, mask in pairs if mask] or pairs[:1]

    def packed(self) -> list[dict[str, Identifier | Expression]]:
        """The words of the ungeneralized key, read from a coded row."""
        terms: list[list[Expression]] = [[] for _ in range(self.words)]
        for dimension in self.dimensions:
            for digit, place in zip(dimension.digits, _places(dimension), strict=True):
                if digit.bits:
                    terms[digit.word].append(_moved(dimension.field.column, place, digit))
        return [
            {"name": name, "value": macro("bits.united", term)} for name, term in zip(self.columns, terms, strict=True)
        ]

    def masks_in_rows(self, node: Node, words: int) -> tuple[int, ...]:
        """Build the mask of each of the `words` words of a coded row that keeps the digits of a generalization."""
        masks = [0] * words
        for dimension, level in zip(self.dimensions, node, strict=True):
            masks[dimension.field.word] |= dimension.mask_in_row(level)
        return tuple(masks)

    def in_rows(self, node: Node, words: int) -> list[dict[str, Identifier | Expression]]:
        """The words of a coded row that a generalization keeps, read from a key."""
        terms: list[list[Expression]] = [[] for _ in range(words)]
        for dimension, level in zip(self.dimensions, node, strict=True):
            places = _places(dimension)[level:]
            for digit, place in zip(dimension.digits[level:], places, strict=True):
                if digit.bits:
                    terms[dimension.field.word].append(_moved_back(self.columns[digit.word], digit, place))
        return [{"name": word_column(word), "value": macro("bits.united", term)} for word, term in enumerate(terms)]


class WholeKeys(Keys):
    """Keys that are never generalized: all words of a frequency set, whatever they hold."""

    def _kept(self, node: Node) -> list[tuple[Identifier, int]]:  # noqa: ARG002
        return [(column, -1) for column in self.columns]


def steps_of(field: Field, suppresses: bool) -> tuple[int, ...]:
    """The levels of a quasi-identifier's hierarchy; only values and `*` under attribute suppression."""
    assert field.coding.hierarchy is not None
    height = field.coding.hierarchy.height
    return (0, height) if suppresses else tuple(range(height + 1))


def lay_out(fields: Sequence[Field], suppresses: bool = False) -> Keys:
    """Place the digits of all path codes: first the topmost of every attribute, then those below, …"""
    steps = [steps_of(field, suppresses) for field in fields]
    widths = [_widths(field, own) for field, own in zip(fields, steps, strict=True)]
    order = sorted((len(row) - level, number, level) for number, row in enumerate(widths) for level in range(len(row)))
    places: dict[tuple[int, int], Digit] = {}
    word, free = 0, WORD_BITS
    for _, number, level in order:
        bits = widths[number][level]
        if bits > free:
            word, free = word + 1, WORD_BITS
        free -= bits
        places[number, level] = Digit(word, free, bits)
    dimensions = (
        Dimension(number, field, tuple(places[number, level] for level in range(len(widths[number]))), steps[number])
        for number, field in enumerate(fields)
    )
    return Keys(tuple(dimensions), word + 1)


def _shifts(field: Field, steps: Sequence[int]) -> tuple[int, ...]:
    assert field.coding.hierarchy is not None
    return tuple(field.coding.hierarchy.shifts[step] for step in steps)


def _widths(field: Field, steps: Sequence[int]) -> list[int]:
    """The bits of each digit, from the value's up."""
    return [upper - lower for lower, upper in pairwise(_shifts(field, steps))]


def _places(dimension: Dimension) -> list[int]:
    """List the bits at which the digits begin in the word of the coded row."""
    return [dimension.field.shift + lower for lower in dimension.shifts[:-1]]


def _moved(column: Identifier, place: int, digit: Digit) -> Expression:
    """A digit, moved from its place in the coded row to its place in the key."""
    return macro("bits.relocated", column, ((1 << digit.bits) - 1) << place, place, digit.shift)


def _moved_back(column: Identifier, digit: Digit, place: int) -> Expression:
    """A digit, moved from its place in the key to its place in the coded row."""
    return macro("bits.relocated", column, ((1 << digit.bits) - 1) << digit.shift, digit.shift, place)
