"""Scan the gains of all cuts of a level: AVC groups in bins, and value by value where a bin may hold a better cut.

LeFevre, DeWitt, TR 1590, section 2 (AVC groups). No cut inside a bin gains more than a bound, so that most values are
never looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlanon.algorithms.tree.task import Branch, Task
from sqlanon.encoding.axes import Axis, carried
from sqlanon.methods.partitioning.gain.criteria import Criterion, Scan
from sqlanon.sql import Expression, Relation, macro

FINE_BINS = ((65_536, 2048), (16_384, 1024), (4_096, 256), (1_024, 64), (0, 32))
"""From so many rows on, a node's ranges are divided into so many bins."""
NARROW_KEYS = 2**31


@dataclass(frozen=True)
class Least:
    """The rows that each child of a split must have.

    fewest: the same for all nodes.
    min_counts: by sampled node and number of children; nodes have a column `fewest` for two children then.
    """

    fewest: int
    min_counts: Relation | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The number as statements take it."""
        return {"fewest": self.fewest, "min_counts": self.min_counts}


@dataclass(frozen=True)
class Scanned:
    """The scanned cuts of a level.

    nodes: the nodes that can be split by gain, each with its place among them.
    keyed: their rows, with a key for every attribute.
    whole: the cuts at the borders of bins; None where all attributes have hierarchies.
    inside: those cuts inside bins that may be the best of their nodes; None where there are none.
    children: `(place, attribute, needed, gain, largest)`, of splits by hierarchies; None where there are none.
    """

    nodes: Relation
    keyed: Relation
    whole: Scan | None = None
    inside: Scan | None = None
    children: Relation | None = None


class Scanner:
    """Scans level after level; `tables` are those that every round makes anew.

    bins: `exact`, or so many bins at whose borders alone ranges are cut.
    """

    def __init__(self, branch: Branch, plain: Task, criterion: Criterion, bins: int | Literal["exact"]) -> None:
        self.branch, self.plain, self.criterion = branch, plain, criterion
        self.least = Least(max(model.least_rows for model in branch.task.models))
        self.bins = FINE_BINS if bins == "exact" else ((0, bins),)
        self.exact = bins == "exact"
        self.tables: set[Relation] = set()

    def table(self, meaning: str) -> Relation:
        """A work table of a round alone."""
        table = self.branch.table(meaning)
        self.tables.add(table)
        return table

    @property
    def _key_bits(self) -> int:
        """Bits that number the bins of a node."""
        most = max((bins - 1).bit_length() for _, bins in self.bins)
        return max([most, *(axis.fan_out_bits for axis in self.branch.task.axes if axis.dimension is not None)])

    def choose_nodes(self, ranges: Relation | Expression) -> tuple[Relation, int]:
        """The nodes that can be split by gain, and how many they are."""
        nodes = self.table("gain_nodes")
        self.branch.decide(
            "methods/partitioning/gain/decide/choose_nodes",
            nodes=nodes,
            ranges=ranges,
            axes=self.branch.task.axes,
            bins=self.bins,
            smallest=self.plain.smallest,
            criterion=self.criterion.shape,
            key_bits=self._key_bits,
        )
        (active,) = self.branch.ask("methods/partitioning/gain/decide/count_nodes", nodes=nodes)
        return nodes, active

    def scan(self, rows: Relation | Expression, nodes: Relation, active: int) -> Scanned:
        """All cuts that may be the best of their node, and what splits by hierarchies gain."""
        keyed = self._key_rows(rows, nodes, active)
        whole = self._new_scan("whole")
        bits = self._key_bits
        keys = {"keyed": keyed, "key_bits": bits, "key_mask": (1 << bits) - 1}
        self._count(whole, "count_groups", self.branch.task.axes, **keys)
        scanned = Scanned(nodes, keyed, children=self._score_children(whole, nodes) if self.plain.nested else None)
        cut = [axis for axis in self.branch.task.axes if axis.dimension is None]
        if not cut:
            return scanned
        begun = {"criterion": self.criterion.shape, "min_counts": self.least.min_counts}
        self.branch.decide(
            "methods/partitioning/gain/decide/create_parts", parts=whole.parts, nodes=nodes, axes=cut, **begun
        )
        self.criterion.score(self.branch, whole, None)
        scanned = replace(scanned, whole=whole)
        return replace(scanned, inside=self.scan_inside(scanned))

    def scan_inside(self, scanned: Scanned, missed: Relation | None = None) -> Scan | None:
        """The cuts inside the bins whose bound beats the best border.

        missed: nodes `(place)` whose best split is of no use: theirs alone, inside all bins that may gain enough.
        """
        whole = scanned.whole
        if whole is None or not self.exact:
            return None
        inside = self._new_scan("inside" if missed is None else "missed")
        self.branch.decide(
            "methods/partitioning/gain/decide/narrow_parts",
            narrowed=inside.parts,
            scored=whole.scored,
            parts=whole.parts,
            missed=missed,
            children=scanned.children,
            criterion=self.criterion.shape,
            key_bits=self._key_bits,
            **self.least.values,
        )
        counts = self.branch.engine.query("methods/partitioning/gain/decide/count_parts", parts=inside.parts)
        if not counts:
            return None
        axes = [self.branch.task.axes[int(attribute)] for attribute, _ in counts]
        self._count(inside, "count_values", axes, keyed=scanned.keyed, parts=inside.parts)
        self.criterion.score(self.branch, inside, whole)
        return inside

    def cuts(self, scanned: Scanned, inside: Scan | None) -> Expression:
        """A SELECT of the splits that gain enough: at borders, inside bins, and by hierarchies."""
        scans = [scan for scan in (scanned.whole, inside) if scan is not None]
        values = {"scans": scans, "children": scanned.children, **self.least.values}
        return self.branch.engine.render("methods/partitioning/gain/decide/list_cuts", **values)

    @property
    def chosen(self) -> dict[str, Any]:
        """Values by which statements that check and send rows look up a node's attribute."""
        return {"axes": self.branch.task.axes, "masks": self.plain.masks}

    def _key_rows(self, rows: Relation | Expression, nodes: Relation, active: int) -> Relation:
        keyed = self.table("keyed")
        self.branch.scan(
            "methods/partitioning/gain/scan/key_rows",
            keyed=keyed,
            rows=rows,
            nodes=nodes,
            axes=self.branch.task.axes,
            criterion=self.criterion.shape,
            words=carried("r", self.plain.word_columns),
            type=macro("values.whole_type", active << self._key_bits < NARROW_KEYS),
        )
        return keyed

    def _new_scan(self, name: str) -> Scan:
        return Scan(*(self.table(f"{name}_{part}") for part in ("parts", "groups", "scored", "followed")))

    def _count(self, scan: Scan, template: str, axes: Sequence[Axis], **values: Any) -> None:
        counted = {"groups": scan.groups, "axes": axes, "criterion": self.criterion.shape}
        self.branch.scan(
            f"methods/partitioning/gain/scan/{template}", weighted=self.plain.weighted, **counted, **values
        )

    def _score_children(self, whole: Scan, nodes: Relation) -> Relation:
        children = self.table("gain_children")
        axes = [axis for axis in self.branch.task.axes if axis.dimension is not None]
        self.criterion.score_children(
            self.branch, whole, children=children, nodes=nodes, axes=axes, **self.least.values
        )
        return children
