"""A few classes, counted side by side: several counts in one number, so that one running sum serves them all.

Counts of up to `bits` bits are the digits of a double of 52 bits. Sums of such numbers are exact, and hold the sums
of all their digits, for no count exceeds the rows of a node: the smaller the nodes, the fewer the numbers. More
classes than a few such numbers hold are followed one by one (`criteria.Classes`), at a cost that goes with the groups
that there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from sqlanon.algorithms.tree.task import Branch
from sqlanon.methods.partitioning.gain.criteria import Criterion, Scan, entropy_shape
from sqlanon.methods.partitioning.gain.targets import EXACT_BITS, Target
from sqlanon.sql import Identifier

MOST_WORDS = 6
ENDS = {"own": "", "along": "_along", "upto": "_upto", "before": "_before", "total": "_total"}


def fits(classes: int, rows: int) -> bool:
    """Tell whether so many classes of a table of so many rows are few enough."""
    return -(-classes // (EXACT_BITS // rows.bit_length())) <= MOST_WORDS


@dataclass(frozen=True)
class PackedClasses(Criterion):
    """Information gain of several classes, in nodes of so many rows at most.

    `c0`, `c1`, … hold their counts, from the lowest digit on.
    """

    target: Target
    least: float
    scale: float
    rows: int

    def within(self, rows: int) -> PackedClasses:
        return replace(self, rows=rows)

    @property
    def _bits(self) -> int:
        return self.rows.bit_length()

    @property
    def _each(self) -> int:
        """The classes of a word."""
        return EXACT_BITS // self._bits

    @property
    def _words(self) -> range:
        return range(-(-int(self.target.classes or 0) // self._each))

    @property
    def shape(self) -> dict[str, Any]:
        """The criterion with its words, and its classes, each with its word and the ends of its digit there.

        `above` is where the next digit begins, None of a word's last one.
        """
        words = [self._word(number) for number in self._words]
        return entropy_shape(self.scale, self.least) | {
            "kind": "packed",
            "words": words,
            "classes": [self._class(number, words) for number in range(int(self.target.classes or 0))],
            "digit_size": 1 << self._bits,
        }

    def score(self, branch: Branch, scan: Scan, before: Scan | None) -> None:
        tables = {"scored": scan.scored, "groups": scan.groups, "parts": scan.parts}
        branch.decide(
            "methods/partitioning/gain/decide/score_packed_classes",
            bounded=before is None,
            criterion=self.shape,
            **tables,
        )

    def score_children(self, branch: Branch, scan: Scan, **values: Any) -> None:
        branch.decide(
            "methods/partitioning/gain/decide/score_packed_children", groups=scan.groups, criterion=self.shape, **values
        )

    def _word(self, number: int) -> dict[str, Any]:
        """The names of a word at each end of a bin, and the places of the digits of its classes."""
        digits = [
            {"y": number * self._each + slot, "place": float(1 << (slot * self._bits))} for slot in range(self._each)
        ]
        return {end: Markup(Identifier(f"c{number}{suffix}")) for end, suffix in ENDS.items()} | {"digits": digits}

    def _class(self, number: int, words: list[dict[str, Any]]) -> dict[str, Any]:
        word, slot = divmod(number, self._each)
        above = 1 << ((slot + 1) * self._bits) if slot < self._each - 1 else None
        names = {end: Markup(Identifier(f"{end}_{number}")) for end in ("own", "upto", "total", "here", "before")}
        return {"word": words[word], "unit": 1 << (slot * self._bits), "above": above, **names}
