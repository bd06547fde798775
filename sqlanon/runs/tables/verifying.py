"""Verification of the released tables of one policy, as somebody sees them who joins them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.models import models_of
from sqlanon.plan.connecting import release_columns
from sqlanon.plan.lookup import require_columns
from sqlanon.plan.opening import open_release_table, open_source_table
from sqlanon.policy import Role
from sqlanon.policy.tables import TablePart, Tables
from sqlanon.runs.tables.references import KeyClasses, create_key_classes, group_name, place_rows
from sqlanon.sql import Relation
from sqlanon.verification.model_hierarchies import checked_hierarchies
from sqlanon.verification.release import attributes_of, verify_rows
from sqlanon.verification.verdict import Verification
from sqlanon.work.workspace import TemporaryWorkspace, Workspace


@dataclass(frozen=True)
class VerifiedTable:
    """The check of one released table about people.

    astray: how many of its rows refer to rows that are not there, or to those of several persons.
    """

    verification: Verification
    astray: int

    def as_json(self) -> dict[str, Any]:
        """One object of plain values."""
        return {**self.verification.as_json(), "astray": self.astray}

    @property
    def satisfied(self) -> bool:
        """Tell whether the table may be released as it is."""
        return not self.astray and self.verification.satisfied


def verify_tables(tables: Tables, options: EngineOptions | None = None) -> dict[str, VerifiedTable]:
    """Check each released table about people, joined with those that it refers to, against the models of the policy.

    Raises PolicyError where a table is not there, or lacks columns of a release.
    """
    url = str(tables.people.policy.source.url)
    with connect(url, options) as engine, contextlib.ExitStack() as opened:
        verifying = _Verifying(engine, TemporaryWorkspace(engine))
        for part in tables.parts:
            if part.person is not None:
                verifying.verify(part, opened.enter_context(open_release_table(engine, part.policy)))
        return verifying.verified


def measure_sources(tables: Tables, options: EngineOptions | None = None) -> dict[str, Verification]:
    """Measure how surely persons could be picked from the source's tables, by whoever joins them; judged by no model.

    Of a table that refers to people the rows are told apart by its own quasi-identifiers, and by those of the rows that
    they refer to.
    """
    url = str(tables.people.policy.source.url)
    with connect(url, options) as engine, contextlib.ExitStack() as opened:
        verifying = _Verifying(engine, TemporaryWorkspace(engine))
        for part in tables.parts:
            if part.person is not None:
                verifying.verify(part, opened.enter_context(open_source_table(engine, part.policy)), is_source=True)
        return {name: one.verification for name, one in verifying.verified.items()}


class _Verifying:
    """The check of several tables, each after those that it refers to."""

    def __init__(self, engine: Engine, workspace: Workspace) -> None:
        self._engine, self._workspace = engine, workspace
        self._classes: dict[str, KeyClasses] = {}
        self.verified: dict[str, VerifiedTable] = {}

    def verify(self, part: TablePart, relation: Relation, *, is_source: bool = False) -> None:
        """Check one table; those that it refers to were checked before.

        is_source: whether it is one of the source, which no model judges.
        """
        engine, policy = self._engine, part.policy
        workspace = self._workspace.part(f"of_{len(self.verified)}")
        there = [column.name for column in engine.columns(relation)]
        quasi = [name for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER]
        columns, astray = quasi if is_source else release_columns(policy, set(there)), 0
        models = () if is_source else models_of(policy)
        require_columns(engine, relation, [*columns, *attributes_of(models), *policy.sensitive, str(part.person)])
        if part.is_within:
            name, placed = group_name(part, there), workspace.table("placed")
            astray = place_rows(engine, relation, there, placed, part, self._classes, name)
            relation, columns = placed, [*columns, name]
        with checked_hierarchies(engine, policy, models, relation) as hierarchies:
            verification = verify_rows(engine, relation, columns, models, policy, hierarchies, None, policy.person)
        if part.key is not None:
            self._classes[part.name] = create_key_classes(engine, workspace, part, relation, columns)
        self.verified[part.name] = VerifiedTable(verification, astray)


def all_satisfied(verified: Mapping[str, VerifiedTable]) -> bool:
    """Tell whether all tables may be released as they are."""
    return all(one.satisfied for one in verified.values())
