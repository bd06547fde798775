"""Stored rules applied to coded rows: one way for each kind of rules that has tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from sqlanon.catalog import RulesKind
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.partition.axes import carried
from sqlanon.partition.classes import partition_of
from sqlanon.partition.result import Partition
from sqlanon.release.recode import create_regions
from sqlanon.rules.classes import Applied, show_regions
from sqlanon.rules.levels import apply_cuts
from sqlanon.rules.routing import route
from sqlanon.rules.store import StoredRules
from sqlanon.sql import expression
from sqlanon.work.workspace import Workspace

T = TypeVar("T")


def classify_rows(engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules) -> Applied:
    """Classify any rows by rules: every class shows what its rule shows, whatever the values of the rows."""
    return _CLASSIFY[rules.record.kind](engine, workspace, coded, rules)


def divide_rows(engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules) -> Partition:
    """Divide the very rows that the rules were made for, as the search did: each class as narrow as its values."""
    return _DIVIDE[rules.record.kind](engine, workspace, coded, rules)


def _divide_by_tree(engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules) -> Partition:
    assert rules.tables is not None
    routed = route(engine, workspace, coded, rules.attributes, rules.tables)
    words = carried("r", coded.word_columns)
    assigned = expression("(SELECT r.leaf{words} FROM {rows} AS r)", words=words, rows=routed.rows)
    return partition_of(engine, workspace, coded, assigned, rounds=0)


def _divide_by_cuts(engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules) -> Partition:
    assert rules.tables is not None
    return apply_cuts(engine, workspace, coded, rules.tables)


def _classify_by_tree(engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules) -> Applied:
    assert rules.tables is not None
    routed = route(engine, workspace, coded, rules.attributes, rules.tables)
    return show_regions(engine, workspace, coded, rules.attributes, rules.tables, routed)


def _classify_by_cuts(engine: Engine, workspace: Workspace, coded: CodedTable, rules: StoredRules) -> Applied:
    recoding = create_regions(engine, workspace, coded, _divide_by_cuts(engine, workspace, coded, rules))
    return Applied(recoding.regions, recoding.partition.assigned, recoding.shown)


_Apply = Callable[[Engine, Workspace, CodedTable, StoredRules], T]
_CLASSIFY: Mapping[RulesKind, _Apply[Applied]] = {
    RulesKind.TREE: _classify_by_tree,
    RulesKind.CUTS: _classify_by_cuts,
}
_DIVIDE: Mapping[RulesKind, _Apply[Partition]] = {
    RulesKind.TREE: _divide_by_tree,
    RulesKind.CUTS: _divide_by_cuts,
}
