"""Cuts of single columns, and the rows with the classes that cuts make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlanon.encoding.axes import Axis
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.frequency.frequency_sets import FrequencySet, FrequencySets, sensitive_column
from sqlanon.encoding.frequency.keys import WholeKeys
from sqlanon.encoding.frequency.task import LatticeTask
from sqlanon.engines.base import Engine
from sqlanon.sql import Identifier, RedactedValue, Relation, macro
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True, order=True)
class Cut:
    """A place where a column may be cut: below a code, which is that of a value."""

    attribute: int
    code: int


@dataclass(frozen=True)
class CutProgress:
    """Cuts made, and sets of cuts tried."""

    cuts: int
    tried: int

    @property
    def text(self) -> str:
        return f"{self.cuts:,} cuts, {self.tried:,} tried"


@dataclass
class CutRows:
    """The rows, or their distinct tuples, with their classes as the cuts are now: `(class, p0, …, n)`.

    last: the greatest number of a class.
    """

    engine: Engine
    workspace: Workspace
    coded: CodedTable
    axes: tuple[Axis, ...]
    task: LatticeTask
    name: str = "cut_rows"
    last: int = 1

    @property
    def table(self) -> Relation:
        return self.workspace.table(self.name)

    @property
    def fewest(self) -> int:
        """The rows that every class needs at least."""
        return max(model.least_rows for model in self.task.models)

    def begin(self, rows: Relation, count: int | Identifier) -> None:
        """Put all rows into one class."""
        words, self.last = self.coded.word_columns, 1
        self.engine.run(
            "encoding/create_weighted_rows",
            specialized=self.table,
            rows=rows,
            words=words,
            count=count,
        )
        self.engine.analyze(self.table)

    def cut(self, cut: Cut) -> None:
        """Cut a column in all classes."""
        split, values = self.workspace.table("cut_split"), self._values(cut)
        self.engine.run("methods/intervals/create_split", split=split, rows=self.table, first=self.last, **values)
        self.engine.run("methods/intervals/move_rows", split=split, rows=self.table, **values)
        (made,) = self.engine.query_one("count_rows", table=split)
        self.workspace.drop(split)
        self.last += int(made)

    def satisfies(self, cut: Cut) -> bool:
        """Tell whether all classes would satisfy the models after one more cut."""
        sensitive = [
            {"word": one.word, "mask": one.mask, "name": sensitive_column(place)}
            for place, one in enumerate(self.task.sensitive)
        ]
        values = self._values(cut)
        return self.check(macro("lattice.parts_of_cut", self.table, values["axis"], values["code"], sensitive), 2)

    def check(self, parts: Any, keys: int) -> bool:
        """Tell whether classes satisfy all models: `(k0, …, s0, …, n)`, with so many columns that tell them apart."""
        base = FrequencySet(self.table, (), self.task.rows)
        sets = FrequencySets(self.engine, self.workspace, self.coded, self.task, WholeKeys((), keys), base)
        failing, _ = self.engine.query_one(
            "encoding/frequency/count_failing", **sets.values_of_checks((), parts, self.task.sensitive)
        )
        return not failing

    def _values(self, cut: Cut) -> dict[str, Any]:
        return {"axis": self.axes[cut.attribute], "code": RedactedValue(cut.code)}


def create_points(engine: Engine, points: Relation, rows: Relation, axes: Sequence[Axis], most: int) -> None:
    """Create the table of the places where columns may be cut, at most so many of each: `(attribute, code)`."""
    engine.run("encoding/create_points", points=points, rows=rows, axes=axes, most=most)
    engine.analyze(points)
