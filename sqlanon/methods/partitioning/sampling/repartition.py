"""A tree grown on a sample meets all rows: they are sent through it, and what violates a model there is pruned.

Source: LeFevre, DeWitt, TR 1590, section 3. Statistics of the leaves are counted once and rolled up to the nodes above.
Every model is monotone under generalization, so that a node can violate one only if one of its leaves does: without a
violating leaf nothing else is looked at. Numbers of nodes are multiples of `unit`, as growth numbers nodes that no
split has touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.algorithms.tree.task import Branch
from sqlanon.encoding.axes import NEVER, carried, masked_value
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.sql import Expression, Identifier, Relation, macro


@dataclass(frozen=True)
class SampleTree:
    """A tree: `(node, parent, first, size, threshold, …)`, where its roots are numbered from `first` on.

    depth: splits on the longest way down.
    nodes: how many there are.
    end: the first number that no node has.
    """

    routes: Relation
    first: int
    roots: int
    depth: int
    nodes: int
    end: int


@dataclass(frozen=True)
class Settled:
    """The leaves that remain of a tree after pruning, and their rows.

    rows: `(node, p0, …[, w])`, the rows of every node in `ranges`, and others, which nobody should look for.
    ranges: `(node, n, lo_0, hi_0, …)`, one row a leaf.
    leaf_of_row: `(node, final)`, the pruned nodes, so many, and where their rows are; None if there are none.
    scans: how many statements read all rows.
    """

    rows: tuple[Relation | Expression, ...]
    ranges: Relation
    leaf_of_row: Relation | None
    pruned: int
    scans: int


def build_tree(branch: Branch, sample_nodes: Sequence[Relation], first: int, roots: int) -> SampleTree:
    """The tree of the nodes that growth went through, numbered from `first` on without large gaps."""
    routes = branch.table("routes")
    task = branch.task
    branch.decide(
        "methods/partitioning/sampling/decide/create_routes",
        routes=routes,
        sample_nodes=sample_nodes,
        first=first,
        roots=roots,
        bits=task.bits,
        fan_out=1 << task.bits,
        never=NEVER,
        masks=task.masks,
    )
    branch.engine.analyze(routes)
    depth, nodes, end = branch.ask("methods/partitioning/sampling/decide/measure_tree", routes=routes)
    return SampleTree(routes, first, roots, int(depth), int(nodes), int(end))


class Repartition:
    """Sends the rows `(node, p0, …[, w])` of sampled nodes through their tree, and prunes it.

    number: of the episode; it tells tables apart.
    """

    def __init__(self, branch: Branch, tree: SampleTree, rows: Relation | Expression, number: int) -> None:
        self.branch = branch
        self.task = branch.task
        self.tree = tree
        self.source = rows
        self.number = number
        self.unit = 1 << self.task.bits

    def carry_out(self) -> Settled:
        """Numbered as in the paper: repartition, count, prune."""
        rows = self._send()
        ranges, avs = self.table("leaf_ranges"), self._count_avs(rows)
        self.branch.scan("measure_nodes", ranges=ranges, rows=rows, **self.task.measured)
        self.branch.engine.analyze(ranges, *avs)
        scans = 2 + len(avs)
        violating = self.table("violating_leaves")
        leaves = macro("sampling.sizes_of_leaves", ranges)
        if not self._record_violating(violating, leaves, [Markup(str(table)) for table in avs]):
            self.branch.workspace.drop(violating, *avs)
            return Settled((rows,), ranges, None, 0, scans)
        leaf_of_row, pruned = self._find_leaf_of_row(violating, ranges, avs)
        moved, settled = self.table("moved"), self.table("settled")
        words = carried("r", self.task.word_columns)
        self.branch.scan(
            "methods/partitioning/sampling/scan/move_rows", moved=moved, rows=rows, leaf_of_row=leaf_of_row, words=words
        )
        self.branch.decide(
            "methods/partitioning/sampling/decide/merge_ranges",
            settled=settled,
            ranges=ranges,
            leaf_of_row=leaf_of_row,
            axes=self.task.axes,
        )
        self.branch.workspace.drop(violating, ranges, *avs)
        self.branch.engine.analyze(moved, settled)
        return Settled((rows, moved), settled, leaf_of_row, pruned, scans + 1)

    def table(self, meaning: str) -> Relation:
        return self.branch.table(meaning, self.number)

    def _send(self) -> Relation:
        rows = self.table("repartitioned")
        words, routes = carried("r", self.task.word_columns), self.tree.routes
        if self.task.nested:
            routes = self.table("edges")
            values = {"routes": self.tree.routes, "fan_out": self.unit, "never": NEVER, "masks": self.task.masks}
            self.branch.decide("methods/partitioning/sampling/decide/create_edges", edges=routes, **values)
            self.branch.engine.analyze(routes)
        levels, child = self._chain(macro("sampling.first_node", self.tree.first))
        tables = {"new_rows": rows, "rows": self.source, "routes": routes}
        how = {"unit": self.unit, "words": words, "clustered": self.task.clusters and self.tree.depth > 0}
        self.branch.scan("methods/partitioning/sampling/scan/send_rows", levels=levels, child=child, **how, **tables)
        self.branch.workspace.drop(*([routes] if self.task.nested else []))
        self.branch.engine.analyze(rows)
        return rows

    def _chain(self, node: Expression) -> tuple[list[dict[str, Any]], Expression]:
        """By level: the node that a row is in, as an expression of the level above; and the one that it ends in.

        A row in a group of a hierarchy that the sample did not show may be beyond the numbers of the children: it is
        astray, in a node of its own below the one that it could not leave, -1 - node.
        """
        levels = []
        for number in range(1, self.tree.depth + 1):
            alias = Identifier(f"s{number}")
            levels.append({"alias": alias, "node": node})
            value = masked_value(alias.name, self.task.words)
            if self.task.nested:
                node = macro("sampling.side_or_group", alias, value, self.unit - 1)
            else:
                node = macro("sampling.side", alias, value)
        return levels, node

    def _count_avs(self, rows: Relation) -> list[Relation]:
        tables = []
        for place, one in enumerate(self.task.sensitive):
            tables.append(self.table(f"leaf_avs{place}_"))
            values = {"avs": tables[-1], "rows": rows, "word": one.word, "mask": one.mask}
            self.branch.scan(
                "methods/partitioning/sampling/scan/count_avs_groups", weight=self.task.weight("r"), **values
            )
        return tables

    def _record_violating(self, violating: Relation, classes: Expression, avs: Sequence[Expression]) -> int:
        """Record the classes that violate a model; how many they are."""
        models = self.task.models
        measures = [self._render_measure(model, avs) for model in self.task.models_of_content]
        fewest = max(model.least_rows for model in models)
        self.branch.decide(
            "methods/partitioning/sampling/decide/list_violating_nodes",
            violating=violating,
            classes=classes,
            fewest=fewest,
            measures=measures,
        )
        return self.branch.count(violating)

    def _render_measure(self, model: PrivacyModel, avs: Sequence[Expression]) -> Expression:
        pairs = zip(self.task.sensitive, avs, strict=True)
        sensitive, groups = next(pair for pair in pairs if pair[0].name == model.attribute)
        classes, domain = Markup(Identifier("classes")), Markup(sensitive.domain)
        judged = Groups(classes, groups, domain, self.task.table_rows, sensitive.height)
        return model.measure(self.branch.engine.render, judged)

    def _find_leaf_of_row(self, violating: Relation, ranges: Relation, avs: Sequence[Relation]) -> tuple[Relation, int]:
        """Find the leaves that rows of pruned nodes go to, and count the pruned nodes."""
        ancestry, cover = self.table("ancestry"), self.table("cover")
        inner, leaf_of_row = self.table("violating_inner"), self.table("leaf_of_row")
        routes, unit = self.tree.routes, self.unit
        self.branch.decide(
            "methods/partitioning/sampling/decide/create_ancestry",
            ancestry=ancestry,
            routes=routes,
            ranges=ranges,
            unit=unit,
            nested=self.task.nested,
        )
        first_child = (self.tree.first + self.tree.roots) * unit
        values = {"ancestry": ancestry, "ranges": ranges, "violating": violating, "first_child": first_child}
        self.branch.decide("methods/partitioning/sampling/decide/create_cover", cover=cover, **values)
        self.branch.engine.analyze(ancestry, cover)
        classes = macro("sampling.sizes_of_inner", cover)
        self._record_violating(inner, classes, [_rolled_up(cover, table) for table in avs])
        self.branch.decide(
            "methods/partitioning/sampling/decide/create_leaf_of_row",
            leaf_of_row=leaf_of_row,
            ancestry=ancestry,
            leaves=violating,
            inner=inner,
        )
        pruned = self.branch.count(leaf_of_row)
        self.branch.workspace.drop(ancestry, cover, inner)
        return leaf_of_row, pruned


def _rolled_up(cover: Relation, avs: Relation) -> Expression:
    return macro("tree.groups_of_classes", cover, avs, Identifier("leaf"), Identifier("class"))
