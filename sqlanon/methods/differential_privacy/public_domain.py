"""Public domains: the values that a policy declares of a column, which the data are never asked for.

A domain's places are numbered from 0, so that every group is an interval of places: the steps of a range of numbers, or
the leaves of a taxonomy, depth first; then the place of undeclared values, and that of NULL.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.intervals import plain
from sqlanon.hierarchies.taxonomy import ROOT, Line, read_taxonomy
from sqlanon.policy import AttributeSection, Domain, Hierarchy

OTHER = "OTHER"
NULL = "NULL"
_MOST_UNITS = 2**53  # which doubles count exactly
_MOST_WHOLE = 2**62
_MOST_DECIMALS = 22  # of powers of ten that doubles hold
_UNSIGNED = "UHUGEINT"  # comparing it with a number below 0 fails where a value has no signed counterpart
_LISTED = (Kind.TEXT, Kind.ENUM, Kind.BOOLEAN, Kind.INTEGER, Kind.UUID, Kind.DATE)


@dataclass(frozen=True)
class Node:
    """A group of a public domain: its label, and the interval of places that it holds, `low` to before `high`.

    children: the groups that take its place when it is specialized; a range of numbers has none here.
    """

    label: str
    low: int
    high: int
    children: tuple[Node, ...] = ()


class PublicDomain(ABC):
    """The declared domain of a column.

    size: the places that it has. null: the place of NULL; None where the column can't hold it.
    """

    column: Column
    size: int
    null: int | None
    root: Node

    @abstractmethod
    def cuts(self, node: Node) -> range | None:
        """The places where a range may be cut; None of a group that is taken apart in one way, or not at all."""

    @abstractmethod
    def parts(self, node: Node, cut: int | None = None) -> tuple[Node, ...]:
        """The groups that take the place of a node, cut at a place if it is a range; none where it is a leaf."""

    @abstractmethod
    def group(self, label: str, at: int) -> Node | None:
        """Find the group of a label that begins at a place; None where there is none."""

    @abstractmethod
    def leaves(self) -> tuple[Node, ...]:
        """All places, each a group of its own."""


@dataclass(frozen=True)
class NumberDomain(PublicDomain):
    """Steps between two numbers; numbers outside count as the first or the last step.

    first, width: of the steps, as whole numbers of 10^-scale.
    """

    column: Column
    first: int
    width: int
    scale: int
    steps: int
    null: int | None

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.steps + (self.null is not None)

    @property
    def root(self) -> Node:  # type: ignore[override]
        return Node(ROOT, 0, self.size)

    @property
    def counts_whole_numbers(self) -> bool:
        """Tell whether whole numbers are divided by whole numbers."""
        return self.column.kind is Kind.INTEGER and self.scale == 0

    def cuts(self, node: Node) -> range | None:
        return range(node.low + 1, min(node.high, self.steps))

    def parts(self, node: Node, cut: int | None = None) -> tuple[Node, ...]:
        if cut is None:
            return ()
        end = min(node.high, self.steps)
        ranges = (self._range(node.low, cut), self._range(cut, end))
        return ranges if node.high == end else (*ranges, Node(NULL, end, node.high))

    def group(self, label: str, at: int) -> Node | None:
        ranges = (self._range(at, end) for end in range(at + 1, self.steps + 1))  # narrow ones first: they are many
        groups = itertools.chain((self.root, Node(NULL, self.steps, self.size)), ranges)
        return next((one for one in groups if one.label == label and one.low == at < one.high), None)

    def leaves(self) -> tuple[Node, ...]:
        steps = tuple(self._range(step, step + 1) for step in range(self.steps))
        return steps if self.null is None else (*steps, Node(NULL, self.null, self.null + 1))

    def _range(self, low: int, high: int) -> Node:
        """Label a range in the grammar of labels: open at the ends of the domain, as numbers beyond count there."""
        below, above = low == 0, high == self.steps
        if self.counts_whole_numbers:
            least, most = self._bound(low), self._bound(high, 1)
            if least == most and not below and not above:
                return Node(least, low, high)
            return Node(f"[{'*' if below else least}-{'*' if above else most}]", low, high)
        upper = "*]" if above else f"{self._bound(high)})"
        return Node(f"[{'*' if below else self._bound(low)}-{upper}", low, high)

    def _bound(self, step: int, less: int = 0) -> str:
        return plain(Decimal(self.first + step * self.width - less).scaleb(-self.scale))


@dataclass(frozen=True)
class TaxonomyDomain(PublicDomain):
    """Values in the groups of a taxonomy.

    places: of the declared values. other: the place of all others.
    """

    column: Column
    root: Node
    places: Mapping[str, int]
    other: int | None
    null: int | None

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.root.high

    def cuts(self, node: Node) -> range | None:  # noqa: ARG002
        return None

    def parts(self, node: Node, cut: int | None = None) -> tuple[Node, ...]:  # noqa: ARG002
        return node.children

    def group(self, label: str, at: int) -> Node | None:
        return next((one for one in _nodes(self.root) if one.label == label and one.low == at), None)

    def leaves(self) -> tuple[Node, ...]:
        return tuple(_leaves(self.root))


def number_domain(column: Column, domain: Domain) -> NumberDomain:
    """Make the domain of a column of numbers; raises PolicyError where it can't be counted exactly."""
    first, width = domain.first, domain.width
    scale = next((s for s in range(_MOST_DECIMALS + 1) if _is_whole(first, s) and _is_whole(width, s)), None)
    if scale is None:
        raise PolicyError(f"domain: from and step may have {_MOST_DECIMALS} decimals, not more.")
    if first < 0 and column.type == _UNSIGNED:
        raise PolicyError(f"domain: numbers of type {_UNSIGNED} can't be compared with one below 0; begin it at 0.")
    units = [int(number * 10**scale) for number in (first, width)]
    made = NumberDomain(column, units[0], units[1], scale, domain.steps, domain.steps if column.nullable else None)
    most = _MOST_WHOLE if made.counts_whole_numbers else _MOST_UNITS
    if max(abs(units[0]), abs(units[0] + domain.steps * units[1])) >= most:
        raise PolicyError("domain: its numbers are too large, or have too many decimals, to be counted exactly.")
    return made


def _is_whole(number: Fraction, scale: int) -> bool:
    return bool((number * 10**scale).denominator == 1)


def declared_values(column: Column, values: Sequence[str], *, whole: bool = False) -> TaxonomyDomain:
    """Make the domain of declared values, without groups but the root.

    whole: rows of other values are left out; otherwise these, and NULL, have places.
    """
    lines = [Line(place, value, (ROOT,)) for place, value in enumerate(values, start=1)]
    complete = column.kind is Kind.BOOLEAN and set(values) == {"true", "false"}
    return _taxonomy(column, lines, None if whole or complete else OTHER, nullable=column.nullable and not whole)


def taxonomy_domain(column: Column, hierarchy: Hierarchy, directory: Path | None) -> TaxonomyDomain:
    """Make the domain of a hierarchy that lists its values; raises PolicyError for what is wrong with the list."""

    def error(what: str) -> PolicyError:
        return PolicyError(f"hierarchy: {what}")

    lines = read_taxonomy(hierarchy, directory, error)
    return _taxonomy(column, lines, hierarchy.unknown, nullable=column.nullable)


def _taxonomy(column: Column, lines: Sequence[Line], other: str | None, *, nullable: bool) -> TaxonomyDomain:
    """Number the leaves depth first; undeclared values have a place of their own, unless it is a declared one."""
    places: dict[str, int] = {}
    groups = list(_groups([(line.value, *line.labels) for line in lines], len(lines[0].labels) - 1, places))
    own = other is not None and other not in places
    for label in [*([other] if own and other is not None else []), *([NULL] if nullable else [])]:
        end = groups[-1].high
        groups.append(Node(label, end, end + 1))
    root = Node(ROOT, 0, groups[-1].high, tuple(groups))
    _refuse_ambiguous(root)
    place = None if other is None else places.get(other, len(places))
    return TaxonomyDomain(column, root, places, place, root.high - 1 if nullable else None)


def _groups(paths: Sequence[tuple[str, ...]], level: int, places: dict[str, int]) -> Iterator[Node]:
    """Yield the groups of a level; one that has a single part is that part."""
    below: dict[str, list[tuple[str, ...]]] = {}
    for path in paths:
        below.setdefault(path[level], []).append(path)
    for label, members in below.items():
        if level == 0:
            places[label] = len(places)
            yield Node(label, places[label], places[label] + 1)
            continue
        parts = tuple(_groups(members, level - 1, places))
        yield parts[0] if len(parts) == 1 else Node(label, parts[0].low, parts[-1].high, parts)


def _refuse_ambiguous(root: Node) -> None:
    """Refuse labels that two groups would have: who reads a cell could not tell them apart."""
    seen: set[str] = set()
    for node in _nodes(root):
        if node.label in seen:
            raise PolicyError(f"two groups or values of the domain are called '{node.label}'; rename one.")
        seen.add(node.label)


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _nodes(child)


def _leaves(node: Node) -> Iterator[Node]:
    if not node.children:
        yield node
    for child in node.children:
        yield from _leaves(child)


def public_domain(
    column: Column, attribute: AttributeSection, directory: Path | None, *, is_target: bool
) -> PublicDomain:
    """Make the domain that a policy declares of a column.

    Raises PolicyError where it does not fit the column.
    """
    if attribute.domain is not None:
        if not column.kind.is_numeric:
            raise PolicyError(
                f"domain is for numbers, and the column is {column.type}; declare values, or make a number of it in a"
                " view, such as the year, or the days or months since one."
            )
        return number_domain(column, attribute.domain)
    if column.kind not in _LISTED:
        raise PolicyError(
            f"the column is {column.type}, whose values can't be listed, or are equal though their texts differ: in a"
            ' view, cast it to text, with COLLATE "C" where its collation ignores case or accents.'
        )
    if attribute.values is not None:
        return declared_values(column, attribute.values, whole=is_target)
    assert attribute.hierarchy is not None
    return taxonomy_domain(column, attribute.hierarchy, directory)
