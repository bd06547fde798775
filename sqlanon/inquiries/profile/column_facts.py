"""Findings of profiling about a table: counts and shares, and no value but words that are known beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from sqlanon.engines.columns import Column
from sqlanon.engines.read_options import FileReading
from sqlanon.plan.subject import Repetition
from sqlanon.policy import Role
from sqlanon.sql import Relation

RARE = 0.005  # of a column's numbers: what so few span


@dataclass(frozen=True)
class ColumnFacts:
    """One column, measured.

    distinct: how many values other than NULL; an estimate where `exact` is false.
    unique_share: the share of all rows that are alone with their value (NULL is a value), from 0 to 1.
    shortest, longest: the lengths in characters of the values' texts; None if all are NULL.
    digits: how many values' texts hold nothing but the digits 0 to 9.
    rare_bottom, rare_top: whether the least, the greatest, `RARE` of the numbers span more than all others.
    span: how wide the range of the numbers is without those; None where it was not measured.
    identifies: the kind of identifiers that the values look like, and the share of those that do; None for no kind.
    groups_of: the values that a vocabulary knows, with their groups from fine to coarse, where most rows hold such.
    """

    column: Column
    rows: int
    nulls: int
    distinct: int
    exact: bool
    unique_share: float
    shortest: int | None
    longest: int | None
    digits: int
    rare_bottom: bool = False
    rare_top: bool = False
    span: float | None = None
    identifies: tuple[str, float] | None = None
    groups_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def groups(self) -> int:
        """The number of different values, NULL among them."""
        return self.distinct + (self.nulls > 0)

    @property
    def all_digits(self) -> bool:
        """Tell whether there are values and all are written in digits only."""
        return 0 < self.digits == self.rows - self.nulls


class Basis(StrEnum):
    """The evidence for a proposed role."""

    NAME = "name"
    VALUES = "values"
    CAUTION = "caution"


@dataclass(frozen=True)
class Proposal:
    """A proposed role, what it rests on, and the reason in a few words."""

    role: Role
    basis: Basis
    reason: str


@dataclass(frozen=True)
class Combination:
    """Columns taken together.

    unique_share: the share of rows that are alone with their combination of values.
    groups: how many combinations there are; an estimate where `exact` is false.
    """

    columns: tuple[str, ...]
    unique_share: float
    groups: int
    exact: bool


@dataclass(frozen=True)
class Dependence:
    """A functional dependence: whoever knows the value of `of` knows that of `on` too; and back, if `mutual`."""

    of: str
    on: str
    mutual: bool


@dataclass(frozen=True)
class Profile:
    """A table's profile, with a proposal for each column.

    pairs: the proposed quasi-identifiers two by two, the most identifying first (at most 45 pairs: of the ten
        quasi-identifiers with the most values).
    combination: all proposed quasi-identifiers together; None if there are none.
    dependences: the functional dependences among quasi-identifiers, and of sensitive attributes on these, so far as
        the pairs that were looked at are counted on all rows.
    tuples: about how many combinations of quasi-identifiers and sensitive attributes there are.
    exact: whether shares were counted on all rows; otherwise they are estimates from a part of the values.
    repetition: the proposed identifiers that repeat, counted on all rows.
    reading: how a file was read; None for a table.
    trusts_owner: whether code of the table's owner was let run, so that the policy has to say the same.
    """

    relation: Relation
    rows: int
    columns: tuple[ColumnFacts, ...]
    proposals: dict[str, Proposal]
    pairs: tuple[Combination, ...]
    combination: Combination | None
    tuples: int
    exact: bool
    repetition: Repetition
    dependences: tuple[Dependence, ...] = ()
    reading: FileReading | None = None
    trusts_owner: bool = False

    def named(self, role: Role) -> tuple[ColumnFacts, ...]:
        """The columns with the proposed role, in the table's order."""
        return tuple(facts for facts in self.columns if self.proposals[facts.name].role is role)

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `sqlanon init --json` prints it."""
        return {
            "rows": self.rows,
            "exact": self.exact,
            "columns": [self._column(facts) for facts in self.columns],
            "dependences": [asdict(one) for one in self.dependences],
        }

    def _column(self, facts: ColumnFacts) -> dict[str, Any]:
        proposal = self.proposals[facts.name]
        return {
            "name": facts.name,
            "type": facts.column.type,
            "role": proposal.role.value,
            "reason": proposal.reason,
            "distinct": facts.distinct,
            "nulls": facts.nulls,
            "unique_share": facts.unique_share,
        }
