"""Clusters as classes: their centres, and the statements by which models check them."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sqlanon.encoding.domains import Sensitive
from sqlanon.engines.base import Engine
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.solver import settle_groups
from sqlanon.releases.clustering import Points
from sqlanon.sql import Expression, Relation


def create_classes(engine: Engine, points: Points, clustered: Relation, classes: Relation) -> None:
    """Find size, block and centre of every cluster."""
    engine.run(
        "methods/clustering/search/create_classes",
        classes=classes,
        clustered=clustered,
        points=points.table,
        coordinates=points.coordinates,
        has_strata=points.has_strata,
    )
    engine.analyze(classes)


def render_measures(
    engine: Engine,
    points: Points,
    classes: Relation,
    clustered: Relation,
    models: Sequence[PrivacyModel],
    sensitive: Sequence[Sensitive],
) -> list[Expression]:
    """Write the statements of the models over the clusters."""
    named = {one.name: one for one in sensitive}

    def groups_of(model: PrivacyModel) -> Groups:
        return _groups(engine, points, classes, clustered, named.get(model.attribute or ""))

    settled = settle_groups(engine, models, groups_of)
    return [model.measure(engine.render, groups_of(model)) for model in settled]


def _groups(
    engine: Engine, points: Points, classes: Relation, clustered: Relation, sensitive: Sensitive | None
) -> Groups:
    sizes = engine.render("methods/clustering/search/sizes_of_classes", classes=classes)
    if sensitive is None:
        return Groups(classes=sizes, avs=None, domain=None, rows=points.rows)
    values = engine.render(
        "methods/clustering/search/values_in_classes",
        clustered=clustered,
        points=points.table,
        word=sensitive.word,
        mask=sensitive.mask,
    )
    return Groups(sizes, values, Markup(sensitive.domain), points.rows, sensitive.height)
