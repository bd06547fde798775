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

from sqlanon.partition.criteria import ManyClasses, Scan, statistic
from sqlanon.partition.targets import EXACT_BITS, Target
from sqlanon.partition.task import Branch, Task
from sqlanon.sql import Identifier, Renderer, expression

MOST_WORDS = 6
ENDS = {"own": "", "along": "_along", "upto": "_upto", "before": "_before", "total": "_total"}


def fits(classes: int, rows: int) -> bool:
    """Tell whether so many classes of a table of so many rows are few enough."""
    return -(-classes // (EXACT_BITS // rows.bit_length())) <= MOST_WORDS


@dataclass(frozen=True)
class PackedClasses(ManyClasses):
    """Several classes of nodes of so many rows at most; `c0`, `c1`, … hold their counts, from the lowest digit on."""

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
    def keys(self) -> tuple[Identifier, ...]:
        return ()

    @property
    def counted(self) -> tuple[str, ...]:
        return tuple(f"c{word}" for word in self._words)

    @property
    def responses(self) -> Markup:
        return Markup("").join(
            expression(", {digit} AS {name}", digit=self._digit(word), name=Identifier(f"c{word}"))
            for word in self._words
        )

    @property
    def carried(self) -> Markup:
        return Markup("").join(expression(", k.{name}", name=Identifier(name)) for name in self.counted)

    @property
    def typed(self) -> Markup:
        return Markup("INT")

    def _digit(self, word: int) -> Markup:
        """The place of the class of a row `r` in a word, as a number: 0 if it is not in this one."""
        first = word * self._each
        whens = [
            expression("WHEN {y} THEN {place}", y=first + slot, place=float(1 << (slot * self._bits)))
            for slot in range(self._each)
        ]
        return Markup("CASE r.y {} ELSE CAST(0 AS FLOAT8) END").format(Markup(" ").join(whens))

    def count(self, name: str, task: Task) -> Markup:
        weight = Markup("r.w * " if task.weighted else "")
        return expression("sum({weight}r.{name})", weight=weight, name=Identifier(name))

    def statistics(self, task: Task, render: Renderer) -> list[dict[str, Markup | Identifier]]:
        weight = Markup("r.w * " if task.weighted else "")
        totals = [statistic(f"c{w}_total", expression("sum({w}{d})", w=weight, d=self._digit(w))) for w in self._words]
        return super().statistics(task, render) + totals

    @property
    def begun(self) -> Markup:
        return Markup("").join(Markup(", s.{0}_total, CAST(0 AS FLOAT8) AS {0}_before").format(c) for c in self.counted)

    @property
    def narrowed(self) -> Markup:
        return Markup("").join(
            Markup(", p.{0}_total, s.{0}_upto - s.{0} AS {0}_before").format(c) for c in self.counted
        )

    def score(self, branch: Branch, scan: Scan, before: Scan | None) -> None:
        tables = {"scored": scan.scored, "groups": scan.groups, "parts": scan.parts}
        branch.decide("gain/score_packed_classes", bounded=before is None, words=self._ends, **tables, **self._shape)

    def score_children(self, branch: Branch, scan: Scan, **values: Any) -> None:
        branch.decide("gain/score_packed_children", groups=scan.groups, **self._shape, **values)

    @property
    def _shape(self) -> dict[str, Any]:
        """The classes, each with its word and the ends of its digit there.

        `above` is where the next digit begins, None of a word's last one.
        """
        return {
            "classes": [self._class(number) for number in range(int(self.target.classes or 0))],
            "digit_size": 1 << self._bits,
            "scale": self.scale,
        }

    @property
    def _ends(self) -> list[dict[str, Markup]]:
        """The words, at each end of a bin."""
        return [{end: Markup(f"c{w}{suffix}") for end, suffix in ENDS.items()} for w in self._words]

    def _class(self, number: int) -> dict[str, Any]:
        word, slot = divmod(number, self._each)
        above = 1 << ((slot + 1) * self._bits) if slot < self._each - 1 else None
        names = {end: Markup(f"{end}_{number}") for end in ("own", "upto", "total", "here", "before")}
        return {"word": self._ends[word], "unit": 1 << (slot * self._bits), "above": above, **names}
