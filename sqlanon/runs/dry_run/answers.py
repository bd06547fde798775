"""Answers that are made up for the statements of a run: of a small table, and a short search that succeeds.

What a statement answers is in the head of its template (see `heads`): of a tree that it splits once more in its second
round and ends in its third, of the four most general nodes of a lattice that all of them satisfy the models.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sqlanon.models import models_of
from sqlanon.models.table_model import table_models
from sqlanon.plan.plan import Plan
from sqlanon.policy import AlgorithmParameters
from sqlanon.runs.dry_run.columns import columns_of_query
from sqlanon.runs.dry_run.heads import Rows, head_of
from sqlanon.runs.dry_run.relations import Relations
from sqlanon.runs.dry_run.script import Script
from sqlanon.sql import Renderer, Statement

VALUES = 1_000  # made-up size of a dictionary
_LENGTH = 5  # of a text


@dataclass
class FakeAnswers:
    """Answers that fit each other. The properties are what heads of templates may say of the `run`.

    script: the statements so far.
    plan: of the run, as soon as there is one.
    algorithm: the parameters of the search.
    omitted: rows that the search suppressed, and that the release lacks.
    of_catalog: the names of the catalog's tables, as statements of a run's own session write them.
    """

    script: Script
    plan: Plan = field(init=False)
    algorithm: AlgorithmParameters = field(init=False)
    omitted: int = 0
    of_catalog: tuple[str, ...] = ()
    values = VALUES
    _turns: Counter[str] = field(default_factory=Counter)

    def answer(self, statement: Statement, render: Renderer, relations: Relations) -> Rows:
        """Make up the rows of a query."""
        head, columns = head_of(render, statement.name), columns_of_query(statement.text)
        head.require_columns(statement.name, columns)
        turn = self._turns[statement.name]
        self._turns[statement.name] += 1
        return head.answer(turn, columns, {**statement.values, "run": self, "made": relations.maker})

    def row(self, statement: Statement, render: Renderer, columns: list[str]) -> tuple[Any, ...]:
        """Make up a row of the table that a statement makes."""
        return head_of(render, statement.name).answer(0, columns, {**statement.values, "run": self})[0]

    @property
    def rows(self) -> int:
        """The rows of the source."""
        return self.plan.rows

    @property
    def steps(self) -> int:
        """The number of statements so far, by which each answer is greater than the one before."""
        return len(self.script.steps)

    @property
    def attributes(self) -> range:
        """The numbers of the quasi-identifiers."""
        return range(len(self.plan.quasi_identifiers))

    @property
    def unleveled(self) -> list[int]:
        """The numbers of the quasi-identifiers without a hierarchy."""
        return [number for number in self.attributes if self.plan.quasi_identifiers[number].hierarchy is None]

    @property
    def length(self) -> int:
        """The characters of all texts that are masked: five, or as few as the shortest mask is for."""
        hierarchies = [one.hierarchy for one in self.plan.policy.attributes.values()]
        return min([_LENGTH, *(one.length for one in hierarchies if one is not None and one.length is not None)])

    @property
    def suppressed(self) -> int:
        """One row, if any may be: then the statements about suppressed rows are there.

        Models of a whole release decide by the sizes of its classes, by which these satisfy them: they leave none out.
        """
        if table_models(models_of(self.plan.policy)):
            return 0
        return min(1, int(self.plan.policy.suppression * self.plan.rows))

    @property
    def searches(self) -> bool:
        """Tell whether a run might search nodes at every threshold (see `tree.thresholds.searchable`)."""
        return bool(self.unleveled) and any(not model.decided_by_size for model in models_of(self.plan.policy))
