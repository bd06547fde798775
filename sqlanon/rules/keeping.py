"""What a run keeps of its recoding: the rules, whatever the search was."""

from __future__ import annotations

from sqlanon.catalog import Catalog, RulesKind
from sqlanon.engines.base import Engine
from sqlanon.release.recode import Recoding
from sqlanon.rules.checking import require_partition
from sqlanon.rules.digest import rules_digest
from sqlanon.rules.levels import attributes_of, levels_record, make_cuts
from sqlanon.rules.making import make_rules
from sqlanon.rules.store import StoredRules, store_rules
from sqlanon.rules.tables import MadeRules
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace


def keep_rules(
    engine: Engine,
    catalog: Catalog,
    workspace: Workspace,
    run: str,
    recoding: Recoding,
    made: MadeRules | None = None,
) -> StoredRules | None:
    """Write down how new rows are recoded like those of a release; None where the search has not said how it did that.

    made: the rules, where the release was written by them.

    Raises VerificationError where the rules of a tree have gaps or overlaps.
    """
    partition = recoding.partition
    planned = [axis.field.attribute for axis in partition.axes]
    if "levels" in partition.found:
        record, attributes = levels_record(engine, partition), attributes_of(partition)
        return StoredRules(record, attributes, None, {}, rules_digest(engine, record, attributes, None, planned))
    made = made or make(engine, workspace, recoding)
    if made is None:
        return None
    stored = store_rules(engine, catalog, run, made, planned)
    workspace.drop(*made.tables.all)
    return stored


def make(engine: Engine, workspace: Workspace, recoding: Recoding, names: Relation | None = None) -> MadeRules | None:
    """The rules of a tree, checked, or of cuts; None for levels, which need no table, and trees not written down.

    names: as in `make_rules`.
    """
    partition = recoding.partition
    if "levels" in partition.found or (partition.tree is None and not all(axis.leveled for axis in partition.axes)):
        return None
    if partition.tree is None:
        tables = make_cuts(engine, workspace, partition)
        return MadeRules(RulesKind.CUTS, attributes_of(partition), tables)
    attributes, tables = make_rules(engine, workspace, recoding, names)
    require_partition(engine, workspace, attributes, tables)
    return MadeRules(RulesKind.TREE, attributes, tables)
