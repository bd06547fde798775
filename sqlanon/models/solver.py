"""Solving outside of the database what the measures of models leave open there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.models.base import Groups, PrivacyModel

Listing = Callable[[PrivacyModel, bool], Sequence[Sequence[Any]]]
"""Fetches what `list_open` of a model selects, of the classes that are to be measured; see there for `worst`."""


def settle(models: Sequence[PrivacyModel], listing: Listing, *, worst: bool = False) -> tuple[PrivacyModel, ...]:
    """Return the models, whose `measure` decides each class of the listing.

    worst: whether the worst measure must be exact too.
    """
    return tuple(_settled(model, listing, worst) if model.needs_solver else model for model in models)


def _settled(model: PrivacyModel, listing: Listing, worst: bool) -> PrivacyModel:
    """Solve what is listed until nothing is: some at a time."""
    for of_worst in (False, True) if worst else (False,):
        while listed := listing(model, of_worst):
            model = model.solve(listed, worst=of_worst)
    return model


def settle_groups(
    engine: Engine, models: Sequence[PrivacyModel], groups_of: Callable[[PrivacyModel], Groups]
) -> tuple[PrivacyModel, ...]:
    """Settle models whose groups are tables, or queries of these alone."""

    def list_open(model: PrivacyModel, worst: bool) -> Sequence[Sequence[Any]]:
        return list(engine.fetch(model.list_open(engine.render, groups_of(model), worst=worst)))

    return settle(models, list_open)
