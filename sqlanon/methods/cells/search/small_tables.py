"""The second search for cells, of small tables: tuples are fetched, and the fewest steps written back."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from sqlanon.algorithms.base import SearchRequest
from sqlanon.encoding.domains import Sensitive
from sqlanon.methods.cells.release import ClimbedTuples
from sqlanon.methods.cells.search.goals import Goal, Weighed
from sqlanon.methods.cells.search.sequence import MOST_PASSES, CodedTuples, Numbers, Values, find_fewest, take_back
from sqlanon.models.base import PrivacyModel
from sqlanon.models.diversity import DistinctLDiversity


def lessen_steps(
    request: SearchRequest,
    decided: ClimbedTuples,
    weighed: Sequence[Weighed],
    goals: Sequence[Goal],
    sensitive: Sequence[Sensitive],
) -> ClimbedTuples:
    """Star tuple by tuple, or take back steps of cells that climb.

    Returns the states that were decided, where that makes no less steps or there are too many tuples and goals.
    """
    steps = [(one.climb.field.column, step.mask) for one in weighed for step in one.climb.steps]
    columns = [{"word": word, "mask": mask} for word, mask in steps]
    fetched = request.engine.query("methods/cells/select_tuples", states=decided.states, columns=columns)
    if not fetched or len(fetched) * len(goals) > MOST_PASSES or decided.tuples.persons is not None:
        return decided
    numbers = np.array(fetched, dtype=np.int64)
    tuples, rows, stars, codes = numbers[:, 0], numbers[:, 1], numbers[:, 2], numbers[:, 3:].T.copy()
    known = {
        model: _fetch_values(request, decided, tuples, model, sensitive) for goal in goals for model in goal.by_value
    }
    judged = [(goal, [known[model] for model in goal.by_value]) for goal in goals]
    ends = list(itertools.accumulate((len(one.weights) for one in weighed), initial=0))
    of_columns = tuple(itertools.starmap(range, itertools.pairwise(ends)))
    weights = tuple(after - before for one in weighed for before, after in itertools.pairwise((0, *one.weights)))
    coded = CodedTuples(codes, rows, of_columns, weights, judged)
    fewest = (find_fewest if len(steps) == len(weighed) else take_back)(coded, stars)
    return decided if fewest is stars else _write(request, decided, zip(tuples.tolist(), fewest.tolist(), strict=True))


def _fetch_values(
    request: SearchRequest,
    decided: ClimbedTuples,
    tuples: Numbers,
    model: PrivacyModel,
    sensitive: Sequence[Sensitive],
) -> Values:
    """Fetch the sensitive values that a model looks at, of each tuple."""
    assert isinstance(model, DistinctLDiversity)
    attribute = next(one for one in sensitive if one.name == model.attribute)
    table = request.workspace.table("values_of_tuples")
    masks = zip(request.coded.word_columns, decided.tuples.masks, strict=True)
    request.engine.run(
        "methods/cells/create_values",
        values=table,
        rows=request.coded.rows,
        states=decided.states,
        word=attribute.word,
        mask=attribute.mask,
        words=[{"name": name, "bits": mask} for name, mask in masks],
    )
    pairs = np.array(request.engine.query("methods/cells/select_values", values=table), dtype=np.int64)
    request.workspace.drop(table)
    counted = pairs if model.counts_null else pairs[pairs[:, 1] != 0]
    return Values(np.searchsorted(tuples, counted[:, 0]), counted[:, 1], model.l)


def _write(request: SearchRequest, decided: ClimbedTuples, stars: Iterable[tuple[int, int]]) -> ClimbedTuples:
    """Write stars in the place of those that were decided."""
    engine, workspace = request.engine, request.workspace
    chosen, starred = (
        workspace.table("chosen_steps"),
        workspace.table("fewest_steps", sum(len(one.steps) for one in decided.climbs)),
    )
    engine.run("methods/cells/create_chosen", chosen=chosen)
    engine.load(chosen, ["tuple", "stars"], list(stars))
    words = request.coded.word_columns
    engine.run("methods/cells/take_stars", starred=starred, states=decided.states, chosen=chosen, words=words)
    engine.analyze(starred)
    workspace.drop(chosen, decided.states)
    return replace(decided, states=starred)
