"""What a run keeps of its recoding: the rules, whatever the search was."""

from __future__ import annotations

from sqlanon.catalog import Catalog, RulesKind
from sqlanon.engines.base import Engine
from sqlanon.recode import Recoding
from sqlanon.rules.checking import require_partition
from sqlanon.rules.levels import attributes_of, levels_record, make_cuts
from sqlanon.rules.making import make_rules
from sqlanon.rules.store import StoredRules, store_rules
from sqlanon.workspace import Workspace


def keep_rules(
    engine: Engine, catalog: Catalog, workspace: Workspace, run: str, recoding: Recoding
) -> StoredRules | None:
    """Write down how new rows are recoded like those of a release; None where the search has not said how it did that.

    Raises VerificationError where the rules of a tree have gaps or overlaps.
    """
    partition = recoding.partition
    if "levels" in partition.found:
        return StoredRules(levels_record(engine, partition), attributes_of(partition), None, {})
    if partition.tree is None and not all(axis.leveled for axis in partition.axes):
        return None
    if partition.tree is None:
        tables, attributes, kind = make_cuts(engine, workspace, partition), attributes_of(partition), RulesKind.CUTS
    else:
        attributes, tables = make_rules(engine, workspace, recoding)
        require_partition(engine, workspace, attributes, tables)
        kind = RulesKind.TREE
    stored = store_rules(engine, catalog, run, kind, attributes, tables)
    workspace.drop(*tables.all)
    return stored
