"""Hierarchies of sensitive attributes, by which models measure distances, held against the policy alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import VerificationError
from sqlanon.hierarchies.scratch import hierarchies_of_models
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.models.base import PrivacyModel
from sqlanon.policy import Hierarchy, Policy
from sqlanon.sql import Relation, macro
from sqlanon.verification.policy_labels import Labelled, Ladder, count_untrue_labels, load_lines, with_length


@contextlib.contextmanager
def checked_hierarchies(
    engine: Engine, policy: Policy, models: Sequence[PrivacyModel], table: Relation
) -> Iterator[dict[str, HierarchyTable]]:
    """The hierarchies that models measure by, built from the values of `table`, each checked before it is used.

    Raises VerificationError where the labels of a value are not those of the policy, or the groups not their labels'.
    """
    with hierarchies_of_models(engine, policy, models, table) as built:
        columns = {column.name: column for column in engine.columns(table)} if built else {}
        for place, (name, hierarchy) in enumerate(built.items()):
            spec = policy.attributes[name].hierarchy
            assert spec is not None
            if count_wrong_labels(engine, columns[name], spec, hierarchy, place):
                raise VerificationError(
                    f"The hierarchy of '{name}' is not the policy's, so that no distance can be measured by it. Please"
                    " report this."
                )
        yield built


def count_wrong_labels(engine: Engine, column: Column, spec: Hierarchy, hierarchy: HierarchyTable, place: int) -> int:
    """Count values, over all levels, with a label that is not the policy's; and groups unlike their labels."""
    spec = with_length(engine, spec, column, hierarchy.table, "value")
    lines = engine.temporary(f"hierarchy_lines_{place}")
    wrong = 0
    ladder = load_lines(engine, Ladder(spec), column, None, lines)
    for level in range(1, hierarchy.height + 1):
        shown = Ladder(spec, ladder.lines, ladder.height, frozenset({level}))
        pairs = macro("verification.labels_of_level", hierarchy.table, level)
        wrong += count_untrue_labels(engine, Labelled(pairs, column, "raw", "cell", may_be_starred=False), shown)
        (torn,) = engine.query_one(
            "verification/count_torn_groups",
            hierarchy=hierarchy.table,
            level=level,
            levels=range(level, hierarchy.height + 1),
        )
        wrong += int(torn)
    return wrong
