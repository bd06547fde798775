"""Candidates for the next splits of all nodes, cut at the median: the AV groups of a level in one statement.

Source: LeFevre, DeWitt, TR 1590, section 2 (attribute-value groups).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlanon.algorithms.tree.task import Branch
from sqlanon.encoding.axes import masked_value
from sqlanon.sql import Expression, Relation, macro

MOST_BIN_BITS, LEAST_BIN_BITS = 8, 4
WEIGHED_BIN_BITS = 13  # where another scan costs more than to count many bins
MOST_BINS_BITS = 20  # of all nodes there
STEPS = 8  # to a half: widths that differ by less than a tenth are alike, so that a few rows don't decide between them


@dataclass(frozen=True)
class Candidates:
    """The candidates of a level, one row a node and attribute, and the table in which their values were counted.

    table: `(candidate, node, n, banned, stage, next_stage, tried, attribute, share, width, lo, hi, shift,
        child_shift, mask_0, …, rank, bin_shift, first_bin)`; `share` is the range's part of the table's, `width` that
        in steps; `stage` is 0 for the widest attributes, 1 for the others, 2 for a search at every threshold alone,
        without a cut here; `child_shift` is NULL for an attribute that is cut at values.
    histogram: `(key, n)`; a key is a candidate and, in the last `key_bits` bits, the place of a bin.
    medians: the bins that hold the medians.
    inside: the values in those of these bins that are wider than a code; it is not made where none is known to be.
    cuts: `(candidate, cut, below, inside, above)`; a split by a hierarchy has none.
    """

    table: Relation
    histogram: Relation
    medians: Relation
    inside: Relation
    cuts: Relation
    key_bits: int

    @property
    def tables(self) -> tuple[Relation, ...]:
        return self.table, self.histogram, self.medians, self.inside, self.cuts


def attributes_of(branch: Branch) -> Relation:
    """The table of the attributes of a branch, which `list_attributes` makes."""
    return branch.table("attributes")


def list_attributes(branch: Branch) -> None:
    """Create the table of the attributes, once for all rounds."""
    attributes = attributes_of(branch)
    branch.decide("create_attributes", attributes=attributes, axes=branch.task.axes, masks=branch.task.masks)
    branch.engine.analyze(attributes)


def cut_at_medians(
    branch: Branch,
    rows: Relation | Expression,
    ranges: Relation,
    splits: Relation,
    size: int,
    *,
    searched: bool,
    at_once: bool,
) -> Candidates:
    """The candidates of nodes that have about so many rows each, with their medians.

    Bins are as many as the root of that: few enough to be counted fast, and enough that few rows lie in a median's.
    Where scans are weighed bins are so many that most hold one code, and need no second scan.

    searched: whether nodes where all medians fail are to be searched at every threshold.
    at_once: whether all attributes are tried at once; otherwise the widest first, the others where these fail.
    """
    bin_bits = _bin_bits(branch, size)
    candidates = Candidates(
        branch.table("candidates"),
        branch.table("histogram"),
        branch.table("medians"),
        branch.table("median_values"),
        branch.table("cuts"),
        max(
            bin_bits + 1, MOST_BIN_BITS + 1, branch.task.bits
        ),  # bins start at multiples of their width: a range may touch one more
    )
    wanted = {"bin_bits": bin_bits, "searched": searched, "at_once": at_once}
    _choose(branch, candidates.table, ranges, splits, wanted)
    _find_medians(branch, rows, candidates)
    return candidates


def _bin_bits(branch: Branch, size: int) -> int:
    """The bits that number the bins of a node of about so many rows; medians do not depend on it."""
    if not branch.engine.traits.weighs_scans:
        return max(LEAST_BIN_BITS, min(MOST_BIN_BITS, size.bit_length() // 2))
    nodes = branch.task.table_rows // max(size, 1)
    return max(MOST_BIN_BITS, min(WEIGHED_BIN_BITS, MOST_BINS_BITS - nodes.bit_length()))


def _find_medians(branch: Branch, rows: Relation | Expression, candidates: Candidates) -> None:
    """Count bins, find those that hold the medians, count the values inside them, find the medians."""
    task, key_bits, medians = branch.task, candidates.key_bits, candidates.medians
    counted = {
        "rows": rows,
        "value": masked_value("c", task.words),
        "weight": task.weight("x"),
        "carried": task.carried_weight("r"),
    }
    tables = {"candidates": candidates.table, "histogram": candidates.histogram}
    branch.scan("count_bins", key_bits=key_bits, **tables, **counted)
    bins = {"key_bits": key_bits, "key_mask": (1 << key_bits) - 1, "masks": task.masks}
    branch.decide("find_median_bins", medians=medians, **bins, **tables)
    inside = candidates.inside if _are_wide(branch, medians) else None
    if inside is not None:
        branch.scan("count_median_values", medians=medians, inside=inside, **counted)
    branch.decide("find_medians", medians=medians, inside=inside, cuts=candidates.cuts)


def _are_wide(branch: Branch, medians: Relation) -> bool:
    """Tell whether any of these bins is wider than a code, where an answer is worth the question."""
    if not branch.engine.traits.weighs_scans:
        return True
    (wide,) = branch.engine.query_one("count_rows", table=macro("tree.wide_bins", medians))
    return bool(wide)


def _choose(branch: Branch, candidates: Relation, ranges: Relation, splits: Relation, wanted: dict[str, Any]) -> None:
    task = branch.task
    branch.decide(
        "choose_attributes",
        candidates=candidates,
        attributes=attributes_of(branch),
        ranges=ranges,
        splits=splits,
        bits=task.bits,
        axes=task.axes,
        nested=task.nested,
        smallest=task.smallest,
        masks=task.masks,
        steps=STEPS,
        **wanted,
    )
