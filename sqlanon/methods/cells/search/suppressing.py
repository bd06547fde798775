"""Local suppression: cells are starred set by set, the lightest sets first, until enough rows fit every row.

The search works on the distinct tuples of the quasi-identifiers. Two rows fit where no column shows two different
values; `*` fits any value. In a round, for each tuple that too few rows fit, and each candidate set of its columns, one
statement counts the rows that would fit the tuple if the set were starred. The lightest set that suffices is starred,
and among equal ones that which most rows fit. A round is repeated as long as it helps a twentieth of the rows that are
left, as what it stars fits other tuples too; then heavier sets are tried, which cost few cells more where few rows are
left. No tuple of a round is spared because others of the round were starred; in small tables each is (`sequence`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sqlanon.algorithms.base import SearchRequest
from sqlanon.encoding.climbs import climbs_of
from sqlanon.encoding.distinct_tuples import Tuples, count_tuples
from sqlanon.encoding.domains import Sensitive, create_domains, require_attainable
from sqlanon.errors import ProtectionError
from sqlanon.methods.cells.policy import SingleCells
from sqlanon.methods.cells.release import ClimbedTuples
from sqlanon.methods.cells.search.goals import Goal, Weighed, goals_of
from sqlanon.methods.cells.search.sequence import MOST_ROWS
from sqlanon.methods.cells.search.small_tables import lessen_steps
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.diversity import DistinctLDiversity
from sqlanon.sql import Expression, Identifier, Relation
from sqlanon.support.quantities import quantity

HELPED = 0.05  # of the rows that were left: a round that helps no more is not repeated


@dataclass(frozen=True)
class CellProgress:
    """Rows that too few others fit, after so many rounds."""

    rounds: int
    rows: int

    @property
    def text(self) -> str:
        return f"round {self.rounds:,}, {quantity(self.rows, 'row')} left"


def suppress(request: SearchRequest, algorithm: SingleCells) -> ClimbedTuples:
    """Choose the cells to be starred.

    Raises ProtectionError where no release can meet the models, or too few rows are equal in columns that stay whole.
    """
    return CellTask.of(request, algorithm).star()


@dataclass(frozen=True)
class CellTask:
    """The distinct tuples of a request, and what a search for their cells needs beside them."""

    request: SearchRequest
    algorithm: SingleCells
    tuples: Tuples
    sensitive: tuple[Sensitive, ...]

    @classmethod
    def of(cls, request: SearchRequest, algorithm: SingleCells) -> CellTask:
        """Count the distinct tuples; raises ProtectionError where no release can meet the models."""
        engine, workspace, coded = request.engine, request.workspace, request.coded
        sensitive = create_domains(engine, workspace, coded, request.models)
        require_attainable(engine, coded.source_rows, request.models, sensitive)
        tuples = count_tuples(engine, workspace, coded, coded.quasi_identifiers)
        return cls(request, algorithm, tuples, sensitive)

    def star(self) -> ClimbedTuples:
        """Choose the cells that show `*`: of small tables by whichever of two searches stars less."""
        weighed = self.weigh_stars()
        return self.lessen(self.search(weighed, "starred"), weighed)

    def lessen(self, decided: ClimbedTuples, weighed: tuple[Weighed, ...]) -> ClimbedTuples:
        """Make fewer steps in small tables, where tuples are looked at one after the other."""
        goals = goals_of(weighed, self.request.models, self.algorithm)
        judges_values = [one for goal in goals for one in goal.by_value]
        is_small = self.request.coded.source_rows <= MOST_ROWS
        if not is_small or not all(isinstance(one, DistinctLDiversity) for one in judges_values):
            return decided
        return lessen_steps(self.request, decided, weighed, goals, self.sensitive)

    def weigh_stars(self) -> tuple[Weighed, ...]:
        """Weigh cells that show their value or `*`."""
        climbs = climbs_of(self.request.coded.quasi_identifiers, by_level=False)
        return tuple(Weighed(climb, (self.algorithm.importance.get(climb.name, 1),)) for climb in climbs)

    def search(self, weighed: tuple[Weighed, ...], name: str) -> ClimbedTuples:
        """Choose the steps of cells; raises ProtectionError where columns that stay whole tell rows apart.

        name: of the table of states, which outlives the search.
        """
        cover = _Cover(self, weighed, name)
        for goal in goals_of(weighed, self.request.models, self.algorithm):
            left = cover.meet(goal)
            if left:
                raise ProtectionError(_refusal(left, goal))
        cover.close()
        climbs = tuple(one.climb for one in weighed)
        return ClimbedTuples(cover.states, self.tuples, climbs, cover.rounds, self.algorithm.combined)


def _refusal(left: int, goal: Goal) -> str:
    stay = goal.columns & ~goal.free
    whole = [one.climb.name for one in goal.weighed if one.climb.bits & stay]
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

    def __init__(self, task: CellTask, weighed: tuple[Weighed, ...], name: str) -> None:
        self._engine = engine = task.request.engine
        self._workspace = task.request.workspace
        self._coded = coded = task.request.coded
        self._tuples = tuples = task.tuples
        self._sensitive = {one.name: one for one in task.sensitive}
        self._report = task.request.report
        self._name, self._made = name, 0
        self._values: dict[str, Relation] = {}
        self._words = [{"name": name, "mask": Identifier(f"m{word}")} for word, name in enumerate(coded.word_columns)]
        self._all = sum(one.climb.bits for one in weighed)
        self._sets = math.prod(len(one.weights) + 1 for one in weighed)
        self.rounds = 0
        self._subsets = self._create_subsets(weighed)
        self.states = self._next()
        engine.run("methods/cells/create_states", states=self.states, tuples=tuples.table, words=self._words)
        engine.analyze(self.states)

    def meet(self, goal: Goal) -> int:
        """Star cells until the goal is met; returns the rows for which no set of columns suffices."""
        compared = self.states if goal.columns == self._all else self._project(goal)
        left, starred = 1, False
        for above, upto in goal.batches():
            helps = True
            while left and helps:
                before = left
                compared, left = self._star(compared, goal, (above, upto))
                helps = upto > 0 and before - left >= HELPED * before
                starred = starred or upto > 0
        if goal.columns == self._all:
            self.states = compared
        elif starred:
            self._apply(compared, goal)
        else:
            self._workspace.drop(compared)
        return left

    def close(self) -> None:
        """Drop what the search needed beside its states."""
        self._workspace.drop(self._subsets, *self._values.values())

    def _next(self) -> Relation:
        self._made += 1
        return self._workspace.table(self._name, self._made)

    def _create_subsets(self, weighed: tuple[Weighed, ...]) -> Relation:
        """Create the table of all sets of steps: their weights, and masks of what they leave of rows."""
        subsets, factor, columns = self._workspace.table("subsets"), 1, []
        for one in weighed:
            columns.append(self._heights(one, factor))
            factor *= len(one.weights) + 1
        self._engine.run("methods/cells/create_subsets", subsets=subsets, columns=columns, words=self._words)
        self._engine.analyze(subsets)
        return subsets

    def _heights(self, one: Weighed, factor: int) -> list[dict[str, Any]]:
        """Describe what a cell of a column may show; sets are numbered by places, of which `factor` is the column's."""
        lasts = (0, *(step.bit for step in one.climb.steps))
        return [
            {
                "stars": bits,
                "last": last,
                "importance": weight,
                "number": place * factor,
                "inner_level": 0 < place < len(one.weights),
                "masks": [mask if word == one.climb.field.word else 0 for word in range(len(self._words))],
            }
            for place, ((bits, _, mask), weight, last) in enumerate(
                zip(one.climb.heights, (0, *one.weights), lasts, strict=True)
            )
        ]

    def _project(self, goal: Goal) -> Relation:
        """Take together the tuples that are equal in the columns of a goal; other columns count as starred."""
        compared = self._next()
        outside = self._all & ~goal.columns
        described = {"states": self.states, "subsets": self._subsets, "outside": outside, "words": self._words}
        self._engine.run("methods/cells/project_states", compared=compared, **described)
        self._engine.analyze(compared)
        return compared

    def _apply(self, compared: Relation, goal: Goal) -> None:
        """Star in all tuples what was starred in their projections."""
        states = self._next()
        outside = self._all & ~goal.columns
        described = {"subsets": self._subsets, "outside": outside, "words": self._words}
        self._engine.run(
            "methods/cells/apply_stars", starred=states, states=self.states, compared=compared, **described
        )
        self._engine.analyze(states)
        self._workspace.drop(self.states, compared)
        self.states = states

    def _star(self, compared: Relation, goal: Goal, weights: tuple[int, int]) -> tuple[Relation, int]:
        """Star the lightest sets of a range of weights that suffice; returns the new states, and the rows left."""
        candidates, starred = self._workspace.table("candidates"), self._next()
        described = {
            "states": compared,
            "subsets": self._subsets,
            "fixed": self._all & ~goal.free,
            "above": weights[0],
            "upto": weights[1],
            "light": goal.star,
            "sets": self._sets,
            "words": self._words,
        }
        self._engine.run("methods/cells/create_candidates", candidates=candidates, least=goal.least_rows, **described)
        self._engine.analyze(candidates)
        fitted = [self._create_fitted(model, candidates, described) for model in goal.by_value]
        measures = [
            self._measure(model, candidates, values) for model, values in zip(goal.by_value, fitted, strict=True)
        ]
        self._engine.run(
            "methods/cells/star_tuples",
            starred=starred,
            states=compared,
            candidates=candidates,
            measures=measures,
            words=self._words,
        )
        self._engine.analyze(starred)
        self._workspace.drop(candidates, compared, *fitted)
        (left,) = self._engine.query_one("methods/cells/count_unmet", states=starred)
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
            "methods/cells/create_values_of_candidates",
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
            "methods/cells/create_values",
            values=values,
            rows=self._coded.rows,
            states=self.states,
            word=sensitive.word,
            mask=sensitive.mask,
            words=words,
        )
        self._engine.analyze(values)
        return values

    def _measure(self, model: PrivacyModel, candidates: Relation, fitted: Relation) -> Expression:
        """Write the SELECT that judges candidates by the sensitive values of the rows that would fit."""
        sensitive = self._sensitive[model.attribute or ""]
        groups = Groups(candidates, fitted, sensitive.domain, self._coded.source_rows, sensitive.height)
        return model.measure(self._engine.render, groups)
