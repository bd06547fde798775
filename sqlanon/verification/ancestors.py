"""Labels of lowest common ancestors, held against raw values and the policy alone.

Hierarchies are built anew from the raw values of the source, and each label of theirs is held against the policy before
a cluster's is compared with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.hierarchies import scratch_hierarchies
from sqlanon.policy import Hierarchy
from sqlanon.sql import Identifier, Relation, Text
from sqlanon.staging.labels import EVERYTHING, NULL
from sqlanon.staging.recode import cell_name
from sqlanon.values.expressions import comparable
from sqlanon.verification.model_hierarchies import count_wrong_labels


def count_untrue_ancestors(
    engine: Engine, values: Relation, witness: Relation, given: Mapping[int, tuple[Column, Hierarchy]]
) -> int:
    """Count the rows of clusters that show another label than that of the lowest common ancestor of their raw values.

    values: `(r0, r1, …)`, the raw values of all rows of the source.
    witness: `(r0, r1, …, leaf, c0, c1, …)`, those of released rows beside their cluster and what it shows.
    given: column and hierarchy of quasi-identifiers, by number.
    """
    raw = {number: f"r{number}" for number in given}
    specs = {raw[number]: spec for number, (_, spec) in given.items()}
    columns = {raw[number]: replace(column, name=raw[number]) for number, (column, _) in given.items()}
    with scratch_hierarchies(engine, values, specs, columns) as built:
        untrue = 0
        for number, (column, spec) in given.items():
            hierarchy = built[raw[number]]
            untrue += count_wrong_labels(engine, column, spec, hierarchy, number)
            (count,) = engine.query_one(
                "verification/count_untrue_ancestors",
                witness=witness,
                hierarchy=hierarchy.table,
                raw=comparable(engine, Markup(Identifier(raw[number])), column.kind),
                value=comparable(engine, Markup(Identifier("value")), column.kind),
                cell=comparable(engine, Markup(cell_name(number)), Kind.TEXT),
                levels=range(hierarchy.height),
                everything=Text(EVERYTHING),
                null=Text(NULL),
            )
            untrue += int(count)
        return untrue
