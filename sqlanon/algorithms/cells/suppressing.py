"""Local suppression: cells are starred set by set, the lightest sets first, until enough rows fit every row.

The search works on the distinct tuples of the quasi-identifiers. Two rows fit where no column shows two different
values; `*` fits any value. In a round, for each tuple that too few rows fit, and each candidate set of its columns, one
statement counts the rows that would fit the tuple if the set were starred. The lightest set that suffices is starred,
and among equal ones that which most rows fit. A round is repeated as long as it helps a twentieth of the rows that are
left, as what it stars fits other tuples too; then heavier sets are tried, which cost few cells more where few rows are
left. No tuple of a round is spared because others of the round were starred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.algorithms.cells.goals import Goal, goals_of
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples, count_tuples
from sqlanon.encoding.domains import Sensitive, create_domains, require_attainable
from sqlanon.engines.base import Engine
from sqlanon.errors import ProtectionError
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.policy import LocalSuppression
from sqlanon.releases.cells import StarredTuples
from sqlanon.sql import Identifier, Relation
from sqlanon.support.quantities import quantity
from sqlanon.work.journal import Progress
from sqlanon.work.workspace import Workspace

HELPED = 0.05  # of the rows that were left: a round that helps no more is not repeated


@dataclass(frozen=True)
class CellProgress:
    """Rows that too few others fit, after so many rounds."""

    rounds: int
    rows: int

    @property
    def text(self) -> str:
        return f"round {self.rounds:,}, {quantity(self.rows, 'row')} left"


def search(
    engine: Engine,
    workspace: Workspace,
    coded: CodedTable,
    models: tuple[PrivacyModel, ...],
    algorithm: LocalSuppression,
    report: Callable[[Progress], None],
) -> StarredTuples:
    """Choose the cells to be starred.

    Raises ProtectionError where no release can meet the models, or too few rows are equal in columns that stay whole.
    """
    sensitive = create_domains(engine, workspace, coded, models)
    require_attainable(engine, coded.source_rows, models, sensitive)
    tuples = count_tuples(engine, workspace, coded, coded.quasi_identifiers)
    cover = _Cover(engine, workspace, coded, tuples, sensitive, report)
    names = [field.attribute.name for field in coded.quasi_identifiers]
    for goal in goals_of(names, models, algorithm):
        left = cover.meet(goal)
        if left:
            raise ProtectionError(_refusal(left, goal, names))
    return StarredTuples(cover.states, tuples, cover.rounds, algorithm.subsets)


def _refusal(left: int, goal: Goal, names: list[str]) -> str:
    whole = [name for place, name in enumerate(names) if goal.columns & ~goal.free & 1 << place]
    rows = f"{quantity(left, 'row')} {'is' if left == 1 else 'are'}"
    return (
        f"No release can meet the policy: {rows} equal to too few others in the columns that stay whole"
        f" ({', '.join(whole)}). Leave one of them out of algorithm.whole, or ask for less."
    )


class _Cover:
    """One search: the states of the distinct tuples, and the rounds so far.

    states: `(tuple, n, p0, p1, …, before, stars, met)`: rows of a tuple, its columns that were starred before the goal
        and that are now, as sets of bits, and whether the goal is met for it.
    """

    def __init__(
        self,
        engine: Engine,
        workspace: Workspace,
        coded: CodedTable,
        tuples: Tuples,
        sensitive: tuple[Sensitive, ...],
        report: Callable[[Progress], None],
    ) -> None:
        self._engine = engine
        self._workspace = workspace
        self._coded = coded
        self._tuples = tuples
        self._sensitive = {one.name: one for one in sensitive}
        self._report = report
        self._made = 0
        self._values: dict[str, Relation] = {}
        self._words = [{"name": name, "mask": Identifier(f"m{word}")} for word, name in enumerate(coded.word_columns)]
        self._all = (1 << len(coded.quasi_identifiers)) - 1
        self.rounds = 0
        self.states = self._next()
        engine.run("cells/create_states", states=self.states, tuples=tuples.table, words=self._words)
        engine.analyze(self.states)

    def meet(self, goal: Goal) -> int:
        """Star cells until the goal is met; returns the rows for which no set of columns suffices."""
        subsets = self._create_subsets(goal)
        compared = self.states if goal.columns == self._all else self._project(subsets, goal)
        left, starred = 1, False
        for above, upto in goal.batches():
            helps = True
            while left and helps:
                before = left
                compared, left = self._star(compared, subsets, goal, (above, upto))
                helps = upto > 0 and before - left >= HELPED * before
                starred = starred or upto > 0
        if goal.columns == self._all:
            self.states = compared
        elif starred:
            self._apply(compared, subsets, goal)
        else:
            self._workspace.drop(compared)
        self._workspace.drop(subsets)
        return left

    def _next(self) -> Relation:
        self._made += 1
        return self._workspace.table("states", self._made)

    def _create_subsets(self, goal: Goal) -> Relation:
        """Create the table of all sets of columns: their weights, and masks of what rows have in the other columns."""
        subsets, fields = self._workspace.table("subsets"), list(enumerate(self._coded.quasi_identifiers))
        masks = [
            {"name": one["mask"], "fields": [(1 << place, field.mask) for place, field in fields if field.word == word]}
            for word, one in enumerate(self._words)
        ]
        weights = [(1 << place, weight) for place, weight in enumerate(goal.weights)]
        self._engine.run("cells/create_subsets", subsets=subsets, sets=self._all + 1, weights=weights, masks=masks)
        self._engine.analyze(subsets)
        return subsets

    def _project(self, subsets: Relation, goal: Goal) -> Relation:
        """Take together the tuples that are equal in the columns of a goal; other columns count as starred."""
        compared = self._next()
        outside = self._all & ~goal.columns
        described = {"states": self.states, "subsets": subsets, "outside": outside, "words": self._words}
        self._engine.run("cells/project_states", compared=compared, **described)
        self._engine.analyze(compared)
        return compared

    def _apply(self, compared: Relation, subsets: Relation, goal: Goal) -> None:
        """Star in all tuples what was starred in their projections."""
        states = self._next()
        outside = self._all & ~goal.columns
        described = {"subsets": subsets, "outside": outside, "words": self._words}
        self._engine.run("cells/apply_stars", starred=states, states=self.states, compared=compared, **described)
        self._engine.analyze(states)
        self._workspace.drop(self.states, compared)
        self.states = states

    def _star(
        self, compared: Relation, subsets: Relation, goal: Goal, weights: tuple[int, int]
    ) -> tuple[Relation, int]:
        """Star the lightest sets of a range of weights that suffice; returns the new states, and the rows left."""
        candidates, starred = self._workspace.table("candidates"), self._next()
        described = {
            "states": compared,
            "subsets": subsets,
            "fixed": self._all & ~goal.free,
            "above": weights[0],
            "upto": weights[1],
            "sets": self._all + 1,
            "words": self._words,
        }
        self._engine.run("cells/create_candidates", candidates=candidates, least=goal.least_rows, **described)
        self._engine.analyze(candidates)
        fitted = [self._create_fitted(model, candidates, described) for model in goal.by_value]
        measures = [
            self._measure(model, candidates, values) for model, values in zip(goal.by_value, fitted, strict=True)
        ]
        self._engine.run(
            "cells/star_tuples",
            starred=starred,
            states=compared,
            candidates=candidates,
            measures=measures,
            words=self._words,
        )
        self._engine.analyze(starred)
        self._workspace.drop(candidates, compared, *fitted)
        (left,) = self._engine.query_one("cells/count_unmet", states=starred)
        self.rounds += 1
        self._report(CellProgress(self.rounds, int(left)))
        return starred, int(left)

    def _create_fitted(self, model: PrivacyModel, candidates: Relation, described: dict[str, Any]) -> Relation:
        """Create the table of the sensitive values of the rows that would fit."""
        name = model.attribute or ""
        if name not in self._values:
            self._values[name] = self._create_values(self._sensitive[name])
        fitted = self._workspace.table("fitted", list(self._values).index(name))
        self._engine.run(
            "cells/create_values_of_candidates",
            fitted=fitted,
            candidates=candidates,
            values=self._values[name],
            **described,
        )
        self._engine.analyze(fitted)
        return fitted

    def _create_values(self, sensitive: Sensitive) -> Relation:
        """Create the table of the sensitive values of each tuple's rows."""
        values = self._workspace.table("values", len(self._values))
        words = [{**one, "bits": mask} for one, mask in zip(self._words, self._tuples.masks, strict=True)]
        self._engine.run(
            "cells/create_values",
            values=values,
            rows=self._coded.rows,
            states=self.states,
            word=sensitive.word,
            mask=sensitive.mask,
            words=words,
        )
        self._engine.analyze(values)
        return values

    def _measure(self, model: PrivacyModel, candidates: Relation, fitted: Relation) -> Markup:
        """Write the SELECT that judges candidates by the sensitive values of the rows that would fit."""
        sensitive = self._sensitive[model.attribute or ""]
        groups = Groups(candidates, fitted, sensitive.domain, self._coded.source_rows, sensitive.height)
        return Markup(model.measure(self._engine.render, groups).text)
