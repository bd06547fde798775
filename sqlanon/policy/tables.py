"""Policies of several tables that belong together: one policy a table, as the flow carries them out.

A table is about people if it is that of the people, or refers to such a table; the people's table is released first,
and each other one after those that it refers to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from sqlanon.errors import PolicyError
from sqlanon.policy.grammar import Policy
from sqlanon.policy.locations import Location
from sqlanon.policy.part import Number, Part, Reference


class SourceSchema(Location):
    """The place of several tables."""

    url: Reference
    """The database of the tables; `${NAME}` is replaced by the environment's value."""
    schema_: str = Field(alias="schema", min_length=1)
    """The schema, by its exact name, without quotes."""


class ReleaseSchema(Part):
    """The place of their release, in the same database."""

    schema_: str = Field(alias="schema", min_length=1)
    """The schema, by its exact name, without quotes; it must be there."""


class PeopleTable(Part):
    """The table that has one row a person."""

    table: str
    """Its name among the tables."""
    key: str
    """The column that tells persons apart, which other tables refer to."""


class TableSection(Part):
    """One of several tables."""

    references: dict[str, str] = Field(default_factory=dict)
    """The columns by which a row refers to one row of another table, and that table: `{patient_id: patients}`. The
    released tables are joined by the same columns. A table about people refers to their table itself, so that its rows
    are those of persons; beside that it may refer to further tables about people."""
    key: str | None = None
    """The column that others refer to; by default the column of the same name as theirs."""
    attributes: dict[str, Any] = Field(min_length=1)
    """Every column of the table, as in the policy of one table. A column that refers to a table about people shows what
    the key there shows, and need not be listed."""
    suppression: Number = Field(default=0.0, ge=0, lt=1)
    """The largest share of the table's rows that may be left out for the models. Rows of persons who are not in the
    release are left out beside these."""


class TablesPolicy(Part):
    """A policy of several tables that belong together, which are released together or not at all."""

    source: SourceSchema
    """The database and schema of the tables."""
    release: ReleaseSchema
    """The schema of the release, whose tables have the names of the source's."""
    people: PeopleTable
    """The persons whom the tables are about."""
    tables: dict[str, TableSection] = Field(min_length=1)
    """The tables that are released, by their exact names, without quotes. The table of people satisfies the models by
    any search for classes. Rows of a table that refers to it are cut into classes within those of their persons, so
    that models hold for whoever knows a person's row in both. Tables about no person are copied, as their attributes
    say."""
    privacy: tuple[dict[str, Any], ...] = Field(min_length=1)
    """The models, as in the policy of one table. A sensitive attribute is named with its table: `visits.diagnosis`.
    `of: [visits]` names the table that a model of no attribute is about; by default it is about the table of people."""
    algorithm: dict[str, Any] | None = None
    """The search for classes of people, as in the policy of one table."""
    catalog: dict[str, Any] | None = None
    """As in the policy of one table."""
    trust: Literal["owner"] | None = None
    """As in the policy of one table."""
    republish: Literal["allow", "same-recoding"] | None = None
    """As in the policy of one table."""
    digest: Literal["run", "record"] = "record"
    """As in the policy of one table."""


PARTS_OF_TABLES = (SourceSchema, ReleaseSchema, PeopleTable, TableSection)


@dataclass(frozen=True)
class TablePart:
    """One table, and the policy by which it is released.

    person: the column of the people's key; None where the table is about nobody.
    references: by columns, the tables about people that rows refer to, and the keys there.
    is_people: whether it is the table of the people.
    """

    name: str
    policy: Policy
    key: str | None = None
    person: str | None = None
    references: Mapping[str, tuple[str, str]] | None = None
    is_people: bool = False

    @property
    def is_within(self) -> bool:
        """Tell whether rows are classed within the classes of the rows that they refer to."""
        return bool(self.references)


@dataclass(frozen=True)
class Tables:
    """The tables of a policy, each after those that it refers to."""

    parts: tuple[TablePart, ...]

    @property
    def people(self) -> TablePart:
        """Return the table of the people."""
        return next(part for part in self.parts if part.is_people)

    def part(self, name: str) -> TablePart:
        """Return the table of this name."""
        return next(part for part in self.parts if part.name == name)


def problems_within(table: str, error: PolicyError) -> list[str]:
    """List the problems of the policy of one of several tables, with its name."""
    return [f"tables.{table}: {problem}" for problem in error.problems]
