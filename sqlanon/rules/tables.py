"""A rule set: what a stored recoding function consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from sqlanon.catalog import RulesKind
from sqlanon.engines.base import Column, Kind
from sqlanon.hierarchies.open_ends import Opened
from sqlanon.limits import Limits
from sqlanon.policy import SET_LIMITS, Show
from sqlanon.ranged import Ranged
from sqlanon.sql import Identifier, Relation

LISTED = 100  # a nominal attribute of so many values or fewer is shown as sets of them, otherwise as intervals


@dataclass(frozen=True)
class RuleAttribute(Ranged):
    """A quasi-identifier of a rule set.

    Its domain is cut into *segments*, numbered from 0, which is NULL. Of an attribute with a hierarchy a segment is a
    group that some rule names, without those groups below it that rules name too; of any other it is the values from a
    cut up to below the next one, and segment 1 begins below all values.

    type, kind: of the source's column.
    segments: how many there are; 0 where the rules are not a tree.
    has_null: whether the source held NULL.
    listed: whether all values are kept, because regions are shown as sets of them.
    height: of the hierarchy, None without one.
    bottom, top: the numbers that stand for all beyond them, as texts; None for none.
    opened: the labels of groups of the hierarchy that hold one of these, and what takes their place.
    hides_nulls: whether what holds NULL shows nothing but NULL.
    set_limit: the members that a set is shown by at most.
    """

    number: int
    name: str
    type: str
    kind: Kind
    show: Show
    segments: int
    has_null: bool
    listed: bool
    height: int | None
    bottom: str | None = None
    top: str | None = None
    opened: tuple[Opened, ...] = ()
    hides_nulls: bool = False
    set_limit: int = SET_LIMITS["list"]

    @property
    def stand_in(self) -> Identifier:
        """Column for the mean or midpoint that the release showed."""
        return Identifier(f"m_{self.number}")

    @property
    def keeps_stand_in(self) -> bool:
        """Tell whether the release shows a number in place of a region."""
        return self.show in (Show.MEAN, Show.MIDPOINT)

    @property
    def column(self) -> Column:
        return Column(self.name, self.type, self.kind)

    @property
    def hides_rows(self) -> bool:
        """Tell whether a row that is NULL shows NULL, whatever its box shows."""
        return self.hides_nulls and (self.height is None or self.keeps_stand_in)

    @property
    def limits(self) -> Limits:
        """The numbers that stand for all beyond them."""
        return Limits(*(None if end is None else Decimal(end) for end in (self.bottom, self.top)))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RuleAttribute:
        opened = tuple(Opened(**one) for one in data.get("opened", ()))
        return cls(**{**data, "kind": Kind(data["kind"]), "show": Show(data["show"]), "opened": opened})


@dataclass(frozen=True)
class RuleTables:
    """The tables of a tree's rules.

    nodes: `(node, parent, depth, attribute, lo, hi)`: the segments of one attribute that a node has of its parent's;
        the root is node 0, at depth 0, and not listed.
    leaves: `(leaf, n, lo_0, hi_0, …)`: the box of every leaf, in segments, both ends included; n is the release's rows
        in it. A leaf is a node; negative ones are what a split by a hierarchy leaves to groups that its node did not
        hold. `m_0, …` is what the release showed of an attribute with a mean or midpoint.
    segments: `(attribute, segment, last, level, value)`: of a cut the least value, as text, NULL being none; of a group
        its level and label, and the last segment of the groups below it. Of cuts through hierarchies: the groups that
        their children replace.
    domain: `(attribute, segment, place, value)`: the values of listed attributes, in order.
    depth: of the deepest node.
    """

    nodes: Relation
    leaves: Relation
    segments: Relation
    domain: Relation
    depth: int

    @property
    def all(self) -> tuple[Relation, ...]:
        return self.nodes, self.leaves, self.segments, self.domain

    @classmethod
    def of(cls, tables: Sequence[Relation], depth: int) -> RuleTables:
        """Rules in tables of the order of `NAMES`."""
        nodes, leaves, segments, domain = tables
        return cls(nodes, leaves, segments, domain, depth)


@dataclass(frozen=True)
class MadeRules:
    """Rules in work tables."""

    kind: RulesKind
    attributes: tuple[RuleAttribute, ...]
    tables: RuleTables


NAMES = ("nodes", "leaves", "segments", "domain")  # of the tables, in the order of `RuleTables.all`
