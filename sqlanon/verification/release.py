"""Verification of the release of a policy, by the table that is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.models import PrivacyModel, models_of
from sqlanon.plan.connecting import open_release, release_columns
from sqlanon.plan.lookup import require_columns
from sqlanon.policy import Policy
from sqlanon.sql import Relation
from sqlanon.staging.labels import EVERYTHING
from sqlanon.verification.matching import verify_matching
from sqlanon.verification.model_hierarchies import checked_hierarchies
from sqlanon.verification.populations import labelled_population
from sqlanon.verification.published_clusters import expand_published
from sqlanon.verification.verdict import Verification
from sqlanon.verification.verify import verify_table


def verify_release(policy: Policy, table: str | None = None, options: EngineOptions | None = None) -> Verification:
    """Check the policy's release, or another table (or file, where the release is one), against the policy's models.

    Raises PolicyError for an unknown table, one that lacks columns of a release, or a release that does not show the
    classes that its models judge.
    """
    if unjudged := why_unjudged(policy):
        raise PolicyError(unjudged)
    models = models_of(policy)
    with open_release(policy, table, models, options) as (engine, relation):
        if policy.algorithm.releases_clusters:
            relation, columns = expand_published(engine, policy, relation)
        else:
            columns = release_columns(policy, {column.name for column in engine.columns(relation)})
        sensitive = policy.sensitive
        persons = [] if policy.released_person is None else [policy.released_person]
        require_columns(engine, relation, [*columns, *attributes_of(models), *sensitive, *persons])
        label = EVERYTHING if policy.stars else None
        with checked_hierarchies(engine, policy, models, relation) as hierarchies:
            return verify_rows(engine, relation, columns, models, policy, hierarchies, label, policy.released_person)


def verify_rows(
    engine: Engine,
    relation: Relation,
    columns: Sequence[str],
    models: Sequence[PrivacyModel],
    policy: Policy,
    hierarchies: Mapping[str, HierarchyTable],
    suppressed_label: str | None,
    person: str | None = None,
) -> Verification:
    """Check the rows of a release as the policy's algorithm lets readers group them; see `verify_table`."""
    if policy.algorithm.has_wildcards:
        climbed = {name: policy.algorithm.hierarchy_of(policy.attributes[name]) for name in columns}
        grouped = {name: spec for name, spec in climbed.items() if spec is not None and spec.kind != "suppress"}
        return verify_matching(engine, relation, columns, models, policy.algorithm.combined, grouped)
    with labelled_population(engine, policy, relation, columns) as population:
        return verify_table(
            engine,
            relation,
            columns,
            models,
            hierarchies=hierarchies,
            suppressed_label=suppressed_label,
            exempt=policy.exempts_stars,
            sensitive=policy.sensitive,
            person=person,
            population=population,
        )


def why_unjudged(policy: Policy) -> str | None:
    """Say why the models can't be judged on the published table; None where they can."""
    reason = policy.algorithm.hides_classes
    if policy.hides_person:
        reason = f"they count the persons of '{policy.person}', of which the release shows nothing"
    if not reason:
        return None
    return f"The published table can't be judged by the models: {reason}. The run judged them before it published."


def attributes_of(models: Sequence[PrivacyModel]) -> list[str]:
    """Return the sensitive attributes that models judge."""
    return [model.attribute for model in models if model.attribute is not None]
