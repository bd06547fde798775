"""The result of every search: the classes of the release, and the class of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from sqlanon.encoding.axes import Axis
from sqlanon.encoding.distinct_tuples import TupleLeaves
from sqlanon.results.search_facts import Facts, TreeFacts
from sqlanon.sql import Expression, Relation


@dataclass(frozen=True)
class Partition:
    """The leaves of a partition, as intervals of codes, and the rows in them.

    leaves: `(leaf, n, lo_0, hi_0, …)`, the tight interval of codes of every quasi-identifier. Where the axes are
        `leveled` there is also `level_0, …`, and `lo_0` and `hi_0` are the code of any one value of the region.
    assigned: `(leaf, p0, p1, …)`, every source row's words with its leaf, the same for the same words; rows that are
        left out are not in it, or their leaves are not among those that the release shows.
    suppressed: how many rows are suppressed, left out or not.
    suppressed_leaf: the leaf of suppressed rows that the release shows, all `*`; None where they are left out.
    facts: of the search, for people and programs.
    has_empty_leaves: whether leaves of the tree may have no rows.
    divides_equal_rows: whether rows with the same words may have several leaves.
    tree: the partition tree of a search that grows one (see `forest.Grown`).
    tuples: the leaves of the distinct tuples that the search worked on, where `assigned` is made of them.
    """

    axes: tuple[Axis, ...]
    leaves: Relation | Expression
    assigned: Relation | Expression
    rounds: int
    suppressed: int = 0
    suppressed_leaf: int | None = None
    facts: Facts = field(default_factory=TreeFacts)
    tree: Relation | Expression | None = None
    divides_equal_rows: bool = False
    has_empty_leaves: bool = False
    tuples: TupleLeaves | None = None

    @property
    def levels(self) -> tuple[frozenset[int], ...] | None:
        """The levels at which each axis may be shown, where the whole column is shown at few; None elsewhere."""
        return None

    @property
    def omitted(self) -> int:
        """The source rows that the release does not hold."""
        return self.suppressed if self.suppressed_leaf is None else 0

    def as_searched(self, rounds: int, facts: Facts, chart: Mapping[str, Any] | None) -> Self:  # noqa: ARG002
        """The same classes, with what an earlier search said of itself; its tree is written down already."""
        return replace(self, rounds=rounds, facts=facts, tree=None)
