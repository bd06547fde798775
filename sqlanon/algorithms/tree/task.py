"""The inputs of tree growth: the task that all of a tree shares, and the branch that one session grows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlanon.encoding.axes import Axis, mask_column
from sqlanon.encoding.distinct_tuples import Persons
from sqlanon.encoding.domains import Sensitive
from sqlanon.engines.base import Engine
from sqlanon.models.base import PrivacyModel
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.work.workspace import Workspace

CLUSTERING_ROWS = 500_000


@dataclass(frozen=True)
class Task:
    """The rows to partition, and the models that their classes must satisfy.

    weighted: rows are distinct tuples with a count `w`.
    smallest: a node with fewer rows can't be split under any of the models.
    extra: further columns of a row, that travel along.
    several: where rows are tuples of one person each, who may have others in another class, how they tell of whom.
    """

    axes: tuple[Axis, ...]
    words: int
    weighted: bool
    models: tuple[PrivacyModel, ...]
    sensitive: tuple[Sensitive, ...]
    table_rows: int
    smallest: int
    extra: tuple[Identifier, ...] = ()
    several: Persons | None = None

    @property
    def counts_persons(self) -> bool:
        """Tell whether a sensitive value occurs as often as persons have it, so that classes are not their sums."""
        return self.several is not None or any(one.weight is not None for one in self.sensitive)

    @property
    def word_columns(self) -> tuple[Identifier, ...]:
        """The columns of a row, but for its node."""
        weight = (Identifier("w"),) if self.weighted else ()
        return tuple(Identifier(f"p{w}") for w in range(self.words)) + weight + self.extra

    @property
    def models_of_content(self) -> tuple[PrivacyModel, ...]:
        """The models that look at what is in a class, not at its size alone."""
        return tuple(model for model in self.models if not model.decided_by_size)

    @property
    def masks(self) -> tuple[Identifier, ...]:
        return tuple(mask_column(w) for w in range(self.words))

    @property
    def bits(self) -> int:
        """Bits that number the pieces of a node."""
        return max(axis.fan_out_bits for axis in self.axes)

    @property
    def nested(self) -> bool:
        """Tell whether any attribute has a hierarchy."""
        return any(axis.dimension is not None for axis in self.axes)

    @property
    def clusters(self) -> bool:
        """Tell whether the rows are so many that it pays to sort them by node."""
        return self.table_rows >= CLUSTERING_ROWS

    def over_tuples(self) -> Task:
        """The same task over distinct tuples that stand for `w` rows each, or persons."""
        weights = tuple(one.weight for one in self.sensitive if one.weight is not None)
        return replace(self, weighted=True, extra=(*self.extra, *weights))

    def weight(self, alias: str) -> Expression:
        """Write the number of source rows that the grouped rows stand for."""
        return macro("tree.weight", Identifier(alias), self.weighted)

    @property
    def measured(self) -> dict[str, Any]:
        """Values for the statement that measures nodes, where no target is measured with them."""
        return {"weight": self.weight("r"), "weighted": self.weighted, "axes": self.axes, "criterion": None}

    def carried_weight(self, alias: str) -> Expression:
        """`, alias.w` where a subquery has to pass the weight on."""
        return macro("tree.carried_weight", Identifier(alias), self.weighted)


@dataclass(frozen=True)
class Branch:
    """A tree, or an independent sub-tree, and the session that grows it; `name` tells its work tables apart."""

    engine: Engine
    workspace: Workspace
    task: Task
    name: str = ""

    def table(self, meaning: str, number: int | None = None) -> Relation:
        """The name of a work table of this branch."""
        return self.workspace.table(f"{meaning}{self.name}", number)

    def carrying(self, *columns: Identifier) -> Branch:
        """The same branch, whose rows have these columns too."""
        return replace(self, task=replace(self.task, extra=columns))

    def scan(self, template: str, **values: Any) -> int:
        """Execute a statement that scans, which reads or writes rows, and may read small node tables.

        Returns the number of rows that it wrote, or -1 if that is unknown.
        """
        return self.engine.run(_named("scan", template), **values)

    def decide(self, template: str, **values: Any) -> int:
        """Execute a statement that decides, which reads and writes node tables alone, never rows.

        Returns the number of rows that it wrote, or -1 if that is unknown.
        """
        return self.engine.run(_named("decide", template), **values)

    def ask(self, template: str, **values: Any) -> tuple[Any, ...]:
        """Fetch the single row of a query that decides."""
        return self.engine.query_one(_named("decide", template), **values)

    def list(self, template: str, **values: Any) -> list[tuple[Any, ...]]:
        """Fetch the rows of a query that decides, of which there are few."""
        return list(self.engine.query(_named("decide", template), **values))

    def count(self, table: Relation) -> int:
        """Count the rows of a node table."""
        return int(self.engine.query_one("count_rows", table=table)[0])


def _named(act: str, template: str) -> str:
    """Name a template of a tree; one of a method is named whole."""
    return template if "/" in template else f"algorithms/tree/{act}/{template}"
