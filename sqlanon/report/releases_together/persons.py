"""Persons of a source, and the persons of each release, with their classes there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable, encode_witness
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.plan.plan import Attribute, Plan
from sqlanon.sql import Expression, Identifier, Relation
from sqlanon.values.expressions import text_of
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class ReleasePersons:
    """The persons of a release.

    name: of the release, as it was given. kind: `run`, `table` or `file`.
    members: a work table `(person, class, rivals)`, a row a person; equal classes are those that labels do not tell
        apart. persons: how many there are; ambiguous: those whom labels of several classes cover.
    omits: the quasi-identifiers that the release does not show.
    """

    name: str
    kind: str
    members: Relation
    persons: int
    ambiguous: int = 0
    omits: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourcePersons:
    """The persons of the policy's source: coded quasi-identifiers beside the person and sensitive values.

    values: the columns of the coded table that hold sensitive values, by their names.
    """

    plan: Plan
    coded: CodedTable
    values: Sequence[tuple[str, Identifier]]

    def person(self, engine: Engine) -> Expression:
        """Write the text of a person of the coded table."""
        return person_text(engine, self.coded.witness, "v0")


def person_text(engine: Engine, table: Relation, name: str) -> Expression:
    """Write the text of a column that holds persons, by which they are known again in other tables."""
    (column,) = [one for one in engine.columns(table) if one.name == name]
    return text_of(engine.render, Markup(Identifier(name)), column.kind, column.type)


def code_persons(engine: Engine, workspace: Workspace, plan: Plan) -> SourcePersons:
    """Code the quasi-identifiers of a source beside its persons and their sensitive values."""
    person = require_person(plan)
    sensitive = [one for one in plan.attributes if one.name in plan.policy.sensitive]
    kept = replace(plan, attributes=(*plan.quasi_identifiers, person, *sensitive), pseudonyms=())
    coded = encode_witness(engine, kept, workspace, whole=True)
    values = [(one.name, Identifier(f"v{place}")) for place, one in enumerate(sensitive, start=1)]
    return SourcePersons(kept, coded, values)


def require_person(plan: Plan) -> Attribute:
    """Return the attribute whose values are persons; raises PolicyError where the policy names none."""
    if plan.person is None:
        raise PolicyError(
            "subject: releases are held against each other by persons; name the column that tells them apart."
        )
    return plan.person


def count_persons(engine: Engine, members: Relation, name: str) -> int:
    """Count the persons of a release; raises PolicyError where a person has several rows."""
    engine.analyze(members)
    rows, persons = engine.query_one("runs/accounts/count_members", members=members)
    if rows != persons:
        raise PolicyError(
            f"{name}: a person of its source has several rows, or none knows whose they are; releases are held against"
            " each other for tables of one row a person."
        )
    return int(persons)
