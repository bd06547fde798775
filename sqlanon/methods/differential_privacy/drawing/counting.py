"""Counting in the database: the rows of each class at each place, and those of each cell. No row travels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.methods.differential_privacy.drawing.scoring import Counts
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.public_domain import Node, NumberDomain, PublicDomain, TaxonomyDomain
from sqlanon.methods.differential_privacy.release import Cut, strides_of
from sqlanon.sql import Expression, Identifier, RedactedValue
from sqlanon.values.expressions import double_of, text_of
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class CountedCells:
    """The cells that have rows, ascending by their numbers, and how many rows each has.

    They are arrays, 16 bytes a cell: there may be as many as the source has rows.
    """

    cells: Counts
    rows: Counts

    @classmethod
    def of(cls, blocks: Iterable[Sequence[tuple[int, int]]]) -> CountedCells:
        """Gather cells with their rows, in any order, from blocks."""
        arrays = [np.array(block, dtype=np.int64).reshape(-1, 2) for block in blocks]
        pairs = np.concatenate([np.zeros((0, 2), dtype=np.int64), *arrays])
        pairs = pairs[np.argsort(pairs[:, 0])]
        return cls(pairs[:, 0], pairs[:, 1])


@dataclass(frozen=True)
class Places:
    """The source's rows as places of the public domains, all of one state of the source.

    rows: a SELECT, which is carried out anew by each statement.
    """

    engine: Engine
    workspace: Workspace
    plan: PrivatePlan
    rows: Expression

    @classmethod
    def of(cls, engine: Engine, workspace: Workspace, plan: PrivatePlan, key: RedactedValue) -> Places:
        """Load the declared values, and write the SELECT.

        The source is not read yet, unless the engine has no snapshots: then the places are written down, once.

        key: by which the rows of a person that count are chosen.
        """
        places = workspace.table("places")
        engine.run("methods/differential_privacy/create_places", places=places)
        target = len(plan.domains)
        listed = [*plan.domains.values(), *([] if plan.target is None else [plan.target[1]])]
        engine.load(places, ["attribute", "value", "place"], list(_declared(listed)))
        engine.analyze(places)
        rows = engine.render(
            "methods/differential_privacy/place_rows",
            source=plan.source,
            places=places,
            attributes=[_placed(engine, number, domain) for number, domain in enumerate(plan.domains.values())],
            target=None if plan.target is None else {"number": target, "value": _text(engine, plan.target[1].column)},
            persons=None if plan.persons is None else Identifier(plan.persons),
            contribution=plan.contribution,
            key=key,
        )
        if not engine.traits.has_snapshots:
            placed = workspace.table("placed")
            engine.run("methods/differential_privacy/create_placed", placed=placed, rows=rows)
            rows = engine.render("engines/select_table", table=placed)
        return cls(engine, workspace, plan, rows)

    def count_places(self) -> dict[tuple[int, int, int], int]:
        """Count rows by (attribute, place, class), of all attributes in one scan."""
        if self.engine.traits.numbers_cells:
            target = len(self.plan.domains)
            counted_of = self._count_numbered([(number, target) for number in range(target)])
            return {
                (number, place, one): rows
                for number, cells in enumerate(counted_of)
                for (place, one), rows in cells.items()
            }
        attributes = [{"number": number} for number in range(len(self.plan.domains))]
        counted = self.engine.query("methods/differential_privacy/count_places", rows=self.rows, attributes=attributes)
        return {(int(attribute), int(place), int(one)): int(rows) for attribute, place, one, rows in counted}

    def count_cells(self, cut: Cut) -> CountedCells:
        """Count the rows of each cell of a cut that has some."""
        attributes = [
            {"group": self._group(number, nodes), "stride": stride}
            for number, (nodes, stride) in enumerate(zip(cut, strides_of([len(one) for one in cut]), strict=True))
            if len(nodes) > 1
        ]
        statement = self.engine.render(
            "methods/differential_privacy/count_cells", rows=self.rows, attributes=attributes, classes=self.plan.classes
        )
        return CountedCells.of(self.engine.fetch_blocks(statement))

    def _group(self, attribute: int, nodes: Sequence[Node]) -> Expression:
        """Write the number of the group that a row is in."""
        place = Identifier(f"a{attribute}")
        if all(node.high - node.low == 1 for node in nodes):
            return Markup(place)
        return self.engine.render.macro("private.group_of", place, [node.low for node in nodes[1:]])

    def count_marginals(self, marginals: Sequence[Sequence[int]]) -> list[dict[tuple[int, ...], int]]:
        """Count rows by the places of some attributes at a time, all of these in one scan.

        marginals: different sets of attributes, in their order; the class has the number after the last one.
        Returns of each the rows by places, where there are some.
        """
        if self.engine.traits.numbers_cells:
            return self._count_numbered(marginals)
        names = self._names
        used = sorted({number for marginal in marginals for number in marginal})
        counted = self.engine.query(
            "methods/differential_privacy/count_marginals",
            rows=self.rows,
            names=[names[number] for number in used],
            marginals=[[names[number] for number in marginal] for marginal in marginals],
        )
        counts: dict[tuple[int, ...], dict[tuple[int, ...], int]] = {tuple(marginal): {} for marginal in marginals}
        for *places, rows in counted:
            where = {number: int(place) for number, place in zip(used, places, strict=True) if place is not None}
            counts[tuple(where)][tuple(where.values())] = int(rows)
        return list(counts.values())

    def _count_numbered(self, marginals: Sequence[Sequence[int]]) -> list[dict[tuple[int, ...], int]]:
        """Count as `count_marginals` does, by the number of each cell."""
        sizes = [*(domain.size for domain in self.plan.domains.values()), self.plan.classes]
        shapes = [tuple(sizes[number] for number in marginal) for marginal in marginals]
        asked = [
            [
                {"name": self._names[number], "stride": stride}
                for number, stride in zip(marginal, strides_of(shape), strict=True)
            ]
            for marginal, shape in zip(marginals, shapes, strict=True)
        ]
        counts: list[dict[tuple[int, ...], int]] = [{} for _ in marginals]
        for marginal, cell, rows in self.engine.query(
            "methods/differential_privacy/count_numbered", rows=self.rows, marginals=asked
        ):
            places = np.unravel_index(int(cell), shapes[marginal])
            counts[marginal][tuple(map(int, places))] = int(rows)
        return counts

    @property
    def _names(self) -> list[Identifier]:
        """The columns of the places by the numbers of their attributes, and of the class after them."""
        return [*(Identifier(f"a{number}") for number in range(len(self.plan.domains))), Identifier("class")]


def _declared(domains: list[PublicDomain]) -> list[tuple[int, str, int]]:
    """List the declared values with their places."""
    return [
        (attribute, value, place)
        for attribute, domain in enumerate(domains)
        if isinstance(domain, TaxonomyDomain)
        for value, place in domain.places.items()
    ]


def _placed(engine: Engine, number: int, domain: PublicDomain) -> dict[str, Any]:
    """The value of an attribute in the source, and its place by that, for the statement."""
    column, value = domain.column, Identifier(f"x{number}")
    null = 0 if domain.null is None else domain.null  # which a column that is declared NOT NULL does not hold
    if isinstance(domain, NumberDomain):
        macro = "private.place_of_whole" if domain.counts_whole_numbers else "private.place_of_double"
        raw = Markup(Identifier(column.name))
        return {
            "number": number,
            "value": raw if domain.counts_whole_numbers else double_of(engine.render, raw, column.kind),
            "place": engine.render.macro(macro, value, domain, null),
            "is_listed": False,
        }
    assert isinstance(domain, TaxonomyDomain)
    other = null if domain.other is None else domain.other
    return {
        "number": number,
        "value": _text(engine, column),
        "place": engine.render.macro("private.place_of_value", value, Identifier(f"declared_{number}"), other, null),
        "is_listed": True,
    }


def _text(engine: Engine, column: Column) -> Expression:
    value = Markup(Identifier(column.name))
    return (
        engine.render.macro("text", value)
        if column.kind is Kind.ENUM
        else text_of(engine.render, value, column.kind, column.type)
    )
