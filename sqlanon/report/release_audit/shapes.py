"""Check that labels are of the kind that the policy's algorithm makes: as narrow as they can be, or of one level.

A label that is true of its rows may still have been exchanged for a wider one.
"""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.hierarchies import HierarchyTable
from sqlanon.policy import Policy, Recodes, Show
from sqlanon.report.release_audit.reach import ShownField
from sqlanon.sql import Text
from sqlanon.staging.labels import EVERYTHING, NULL
from sqlanon.verification.release_checks import Claims


def count_misshapen(engine: Engine, policy: Policy, shown: list[ShownField], claims: Claims, boxed: bool) -> int:
    """The rows, over all quasi-identifiers with a hierarchy, whose label is none that the algorithm gives them.

    Trees show the lowest group that holds a class's values (unless they are `boxed`); full-domain generalization all
    values at one level; top-down specialization each value in one way, as ordered-set partitioning does without
    hierarchies.
    """
    labelled = [one for one in shown if one.show is Show.LABEL]
    if policy.algorithm.shows_cuts:
        return sum(_count_several(engine, one, claims) for one in labelled)
    return sum(
        _count(engine, policy, one, one.field.coding.hierarchy, claims, boxed)
        for one in labelled
        if one.field.coding.hierarchy is not None
    )


def shows_on_rows(policy: Policy) -> bool:
    """Tell whether a label of another kind is seen on single rows; else it takes all rows of its class."""
    return policy.algorithm.shows_cuts or policy.algorithm.recodes in (Recodes.CUTS, Recodes.LEVELS)


def _count(
    engine: Engine, policy: Policy, shown: ShownField, hierarchy: HierarchyTable, claims: Claims, boxed: bool
) -> int:
    if policy.algorithm.recodes is Recodes.CUTS:
        return _count_several(engine, shown, claims)
    (cell,) = shown.cells
    named = {"witness": claims.witness, "cell": cell, "x": shown.x, "suppressed_leaf": claims.starred}
    texts = {"everything": Text(EVERYTHING), "null": Text(NULL), "dictionary": hierarchy.table}
    if policy.algorithm.recodes is Recodes.LEVELS:
        if policy.remainder == "recode":
            return 0
        levels = range(hierarchy.height + 1)
        return int(min(engine.query_one("report/release_audit/count_off_level", **named, **texts, levels=levels)))
    if boxed:
        return 0
    return int(*engine.query_one("report/release_audit/count_wide_groups", **named, **texts, shifts=hierarchy.shifts))


def _count_several(engine: Engine, shown: ShownField, claims: Claims) -> int:
    """The rows with values that are shown in more than one way."""
    (cell,) = shown.cells
    named = {"witness": claims.witness, "cell": cell, "x": shown.x, "suppressed_leaf": claims.starred}
    return int(*engine.query_one("report/release_audit/count_several_labels", **named))
