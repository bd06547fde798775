"""Statements over the items of persons: who has which, and sets of their groups that too few have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.methods.itemsets.cut import Item, ItemCut, ItemGroup, items_of_classes
from sqlanon.sql import Identifier, Relation
from sqlanon.work.workspace import Workspace

ROW = Identifier("r")


@dataclass(frozen=True)
class Baskets:
    """The items of every person, each once, in a work table `(person, item, n, p0, …)`.

    coded: the table whose rows they are of. unknown: whether rows of nobody known are of a person each.
    """

    engine: Engine
    workspace: Workspace
    coded: CodedTable
    person: Field
    unknown: bool

    @property
    def table(self) -> Relation:
        return self.workspace.table("baskets")

    @property
    def items(self) -> Field:
        """The quasi-identifier whose values are the items."""
        (field,) = self.coded.quasi_identifiers
        return field

    def begin(self) -> None:
        """Write down the items of every person."""
        with self.engine.grouping_by_hash():
            self.engine.run(
                "methods/itemsets/create_baskets",
                baskets=self.table,
                rows=self.coded.rows,
                person=self.person.code(ROW),
                item=self.items.code(ROW),
                unknown=self.unknown,
                words=self.coded.word_columns,
            )
        self.engine.analyze(self.table)

    def cut(self, budget: int) -> ItemCut:
        """Show every item itself, where so many rows may be left out."""
        hierarchy = self.items.coding.hierarchy
        assert hierarchy is not None
        listed = self.engine.query("methods/itemsets/list_items", baskets=self.table)
        items = {int(code): Item(int(code), int(persons), int(rows)) for code, persons, rows in listed}
        shifts = {level: hierarchy.shifts[level] for level in (0, *hierarchy.steps)}
        levels = [
            {"number": level, "shift": shift, "leaves": hierarchy.leaves_of_group(level)}
            for level, shift in shifts.items()
            if 0 < level < hierarchy.height
        ]
        leaves = {}
        if levels:
            groups = self.engine.query("methods/itemsets/list_groups", dimension=hierarchy.table, levels=levels)
            leaves = {ItemGroup(int(level), int(code)): int(number) for level, code, number in groups}
        return ItemCut(shifts, leaves, hierarchy.domain + (0 in items), budget, items)

    @contextlib.contextmanager
    def placed(self, cut: ItemCut, *numbered: Mapping[int, ItemGroup]) -> Iterator[Relation]:
        """Inside it a work table `(item, class)` places the items of a cut into numbered groups."""
        placed = self.workspace.table("placed")
        self.engine.run("methods/itemsets/create_placed", placed=placed)
        rows = [row for classes in numbered for row in items_of_classes(cut, classes)]
        self.engine.load(placed, ["item", "class"], rows)
        self.engine.analyze(placed)
        yield placed
        self.workspace.drop(placed)

    @contextlib.contextmanager
    def memberships(self, cut: ItemCut, *numbered: Mapping[int, ItemGroup]) -> Iterator[Relation]:
        """Inside it a work table `(person, class)` has the numbered groups of every person, each once."""
        memberships = self.workspace.table("memberships")
        with self.placed(cut, *numbered) as placed, self.engine.grouping_by_hash():
            self.engine.run(
                "methods/itemsets/create_memberships", memberships=memberships, baskets=self.table, placed=placed
            )
        self.engine.analyze(memberships)
        yield memberships
        self.workspace.drop(memberships)

    @contextlib.contextmanager
    def ranks(self, ranks: Mapping[int, int], name: str = "ranks") -> Iterator[Relation]:
        """Inside it a work table `(class, value)` has a number for each class."""
        table = self.workspace.table(name)
        self.engine.run("methods/itemsets/create_ranks", ranks=table)
        self.engine.load(table, ["class", "value"], list(ranks.items()))
        self.engine.analyze(table)
        yield table
        self.workspace.drop(table)

    @contextlib.contextmanager
    def short(
        self, memberships: Relation, size: int, persons: int, first: int = 1, owners: Relation | None = None
    ) -> Iterator[Relation]:
        """Inside it a work table `(class_1, …)` has the sets of so many classes that too few persons have.

        first: the least number of a class that each of them must have one from. owners: `(class, owner)` of these, each
            of which is joined with those of its own owner, and with classes of lower numbers.
        """
        short = self.workspace.table("short_sets")
        with self.engine.grouping_by_hash():
            self.engine.run(
                "methods/itemsets/create_short",
                short=short,
                memberships=memberships,
                size=size,
                persons=persons,
                first=first,
                owners=owners,
            )
        self.engine.analyze(short)
        yield short
        self.workspace.drop(short)
