"""The rows of a population by the labels that a published table shows, from raw values and the policy alone.

Hierarchies are built anew from the raw values of the population, and each label of theirs is held against the policy
before rows are counted by it. The level of a column is the lowest at which the hierarchy has all labels that the table
shows, which stand for the same values at every level; of one that it lacks, classes fit no row of the population.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.hierarchies import scratch_hierarchies
from sqlanon.hierarchies.ambiguity import require_one_meaning
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.plan.lookup import require_columns
from sqlanon.plan.population import find_population
from sqlanon.plan.trust import reading
from sqlanon.policy import Policy
from sqlanon.sql import Expression, Identifier, Relation, Text, macro
from sqlanon.staging.labels import EVERYTHING, NULL
from sqlanon.values.expressions import comparable, shown
from sqlanon.verification.model_hierarchies import count_wrong_labels

_FIRST = 1000  # number of a hierarchy here; those of sensitive attributes, open beside them, are from 0 on


@contextlib.contextmanager
def labelled_population(
    engine: Engine, policy: Policy, table: Relation, quasi_identifiers: Sequence[str]
) -> Iterator[Relation | None]:
    """Make the temporary table `(q0, q1, …, n)` of the population by the labels of a published table.

    None where no model looks at a population.

    Raises PolicyError where the population is missing, lacks a column, or has values that its hierarchy lacks, and
    VerificationError where the labels of a value are not those of the policy.
    """
    if policy.population is None:
        yield None
        return
    population = find_population(policy, engine)
    if population is None:
        raise PolicyError(f"There is no table {policy.population}, the population that models look at.")
    require_columns(engine, population.table, quasi_identifiers)
    columns = {column.name: column for column in population.columns if column.name in quasi_identifiers}
    hierarchies = {name: policy.algorithm.hierarchy_of(policy.attributes[name]) for name in quasi_identifiers}
    specs = {name: spec for name, spec in hierarchies.items() if spec is not None}
    with (
        reading(engine, population.table, trusts_owner=policy.trust == "owner"),
        scratch_hierarchies(engine, population.table, specs, columns, _FIRST) as built,
    ):
        for place, (name, spec) in enumerate(specs.items(), _FIRST):
            require_one_meaning(engine, name, built[name])
            if count_wrong_labels(engine, columns[name], spec, built[name], place):
                raise VerificationError(
                    f"The hierarchy of '{name}' is not the policy's, so that no population can be counted by it. Please"
                    " report this."
                )
        labels, published = engine.temporary("population_labels"), {one.name: one for one in engine.columns(table)}
        engine.run(
            "verification/label_population",
            labels=labels,
            population=population.table,
            columns=[
                _labelled(engine, (table, published[name]), columns[name], built[name], place)
                for place, name in enumerate(quasi_identifiers)
            ],
        )
        yield labels


def _labelled(
    engine: Engine, published: tuple[Relation, Column], column: Column, hierarchy: HierarchyTable, place: int
) -> dict[str, Any]:
    """Build the template's values to label one column at the level that the published table shows."""
    name, alias = Identifier(column.name), f"hierarchy_{place}"
    (key,) = shown(engine, published[1], Markup(name))
    level = _level_of(engine, *published, hierarchy)
    label: Expression | Text = Text(EVERYTHING)
    if level < hierarchy.height:
        label = macro("verification.label_or_null", Identifier(alias), Identifier(f"l{level}"), Text(NULL))
    return {
        "name": name,
        "label": label,
        "shown": key,
        "hierarchy": hierarchy.table if level < hierarchy.height else None,
        "alias": Identifier(alias),
        "value": comparable(engine, macro("codes.of_entry", Identifier(alias), Identifier("value")), column.kind),
        "raw": comparable(engine, macro("codes.of_entry", Identifier("people"), name), column.kind),
    }


def _level_of(engine: Engine, table: Relation, column: Column, hierarchy: HierarchyTable) -> int:
    """Find the lowest level that has the most of a column's labels; the root where it shows `*` alone."""
    cell = comparable(engine, Markup(Identifier(column.name)), column.kind)
    levels = [
        {
            "number": level,
            "label": comparable(engine, macro("codes.of_entry", Identifier("h"), Identifier(f"l{level}")), column.kind),
        }
        for level in range(hierarchy.height + 1)
    ]
    counted = engine.query(
        "verification/count_unlabelled",
        table=table,
        cell=cell,
        hierarchy=hierarchy.table,
        levels=levels,
        null=Text(NULL),
    )
    return min((int(unlabelled), int(level)) for level, unlabelled in counted)[1]
