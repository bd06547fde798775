"""Classifiers for a column of a release with noise, from reconstructed distributions."""

from __future__ import annotations

import contextlib

from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.reconstruction.classifying.comparing import compare
from sqlanon.methods.randomization.reconstruction.classifying.features import read_features, read_target
from sqlanon.methods.randomization.reconstruction.reconstruct import (
    BINS,
    MOST_BINS,
    declared_range,
    read_released_changes,
)
from sqlanon.methods.randomization.reconstruction.result import Classification
from sqlanon.plan.connecting import open_release
from sqlanon.plan.lookup import require_columns
from sqlanon.plan.opening import open_source_table
from sqlanon.policy import Policy, Recodes
from sqlanon.sql import Relation


def compare_classifiers(
    policy: Policy, target: str, *, bins: int = BINS, options: EngineOptions | None = None
) -> Classification:
    """Train classifiers for a column that is released as it is, from all other columns of a release with noise.

    Naive Bayes and a decision tree learn from the distributions that are reconstructed for each class (ByClass;
    Agrawal, Srikant, SIGMOD 2000), from the released rows as they are and, where it can still be read, from the source,
    whose rows also test them. Nothing is changed.

    Raises PolicyError (no such release or column, a target that was randomized or has too many values), AccessError,
    EngineError.
    """
    if policy.algorithm.recodes is not Recodes.NOISE:
        raise PolicyError("--classify is for releases of algorithm: randomize.")
    if not 1 <= bins <= MOST_BINS:
        raise PolicyError(f"There are 1 to {MOST_BINS:,} bins, not {bins:,}.")
    with contextlib.ExitStack() as stack:
        engine, release = stack.enter_context(open_release(policy, options=options, makes_tables=True))
        changes = read_released_changes(engine, release)
        require_columns(engine, release, [target, *changes])
        if target in changes:
            raise PolicyError(f"'{target}' was randomized too: a target is a column that is released as it is.")
        hidden = {name: change for name, change in changes.items() if change.hides_distribution}
        own_sizes = {name: change.added_columns for name, change in changes.items() if change.added_columns}
        added = {added for names in own_sizes.values() for added in names}
        if target in added:
            raise PolicyError(f"'{target}' has the sizes of noise, and is of no source: there is nothing to predict.")
        columns = {one.name: one for one in engine.columns(release) if one.name not in {*own_sizes, *added}}
        predicted = read_target(engine, release, columns.pop(target))
        ranges = {name: range_ for name in changes if (range_ := declared_range(policy, name)) is not None}
        features, omitted = read_features(engine, release, list(columns.values()), hidden, ranges, bins)
        if not features:
            raise PolicyError(
                f"No column of {release} is left to predict '{target}' by: classifiers take none with sizes of noise of"
                " its own, and none with too many texts."
            )
        names = [one.column.name for one in features]
        source, unread = _open_source(stack, engine, policy, [target, *names])
        compared = compare(engine, release, source, features, predicted)
        return Classification(
            ".".join(release.parts[-2:]),
            target,
            tuple(names),
            (*omitted, *own_sizes),
            compared.trained,
            compared.tested,
            "release" if source is None else "source",
            compared.baseline,
            compared.noise_free,
            compared.as_is,
            compared.reconstructed,
            unread,
        )


def _open_source(
    stack: contextlib.ExitStack, engine: Engine, policy: Policy, names: list[str]
) -> tuple[Relation | None, str | None]:
    """Open the source of a policy for reading; None, with the reason, where it can't be read."""
    try:
        source = stack.enter_context(open_source_table(engine, policy))
        require_columns(engine, source, names)
    except PolicyError as error:
        return None, str(error)
    hidden = engine.unreadable_columns(source).intersection(names)
    if hidden:
        return None, f"The role may not read {', '.join(sorted(hidden))} of {source}."
    return source, None
