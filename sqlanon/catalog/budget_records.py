"""Privacy budgets as the catalog keeps them, as frozen values.

Amounts are values of epsilon, the privacy loss, as exact fractions: sums of floating-point numbers would let a run
through that the budget does not cover, or refuse one that it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from sqlanon.support.exact import decimal_text, round_outward


@dataclass(frozen=True)
class MechanismUse:
    """The use of one mechanism, before it happens.

    mechanism: its name, with that of the library. epsilon: an upper bound of its privacy loss. sensitivity: the most
    that one unit changes of what it is given. scale: that of its noise.
    """

    mechanism: str
    epsilon: Fraction
    sensitivity: Fraction
    scale: Fraction


@dataclass(frozen=True)
class Spending:
    """The privacy loss that a run is about to cause.

    budget: its name. limit: the most that all runs together may cause by the run's policy, whatever is granted; None
    for as much as is granted.
    unit: the column of persons where these are protected; None where rows are. release: the table or file.
    """

    budget: str
    limit: Fraction | None
    unit: str | None
    run: str
    release: str
    uses: tuple[MechanismUse, ...]

    @property
    def epsilon(self) -> Fraction:
        """The sum over all mechanisms, each rounded up where its exact number is too long to be kept."""
        return sum((round_outward(use.epsilon) for use in self.uses), Fraction(0))


@dataclass(frozen=True)
class BudgetGrant:
    """An amount that somebody added to a budget; 0 where a source was added alone.

    granted_by: the user of the operating system. granted: the time.
    """

    budget: str
    number: int
    epsilon: Fraction
    granted_by: str
    reason: str
    granted: datetime


@dataclass(frozen=True)
class BudgetEntry:
    """The use of one mechanism, as it was written down before it happened."""

    budget: str
    number: int
    run: str
    release: str
    mechanism: str
    epsilon: Fraction
    sensitivity: Fraction
    scale: Fraction
    written: datetime


ASKED = "ask"
"""The run of answered questions, which are no runs; the question takes the place of the release."""


@dataclass(frozen=True)
class BudgetUse:
    """All that one run, or all answers to one question, consumed of a budget.

    mechanisms: how many. written: when the first was written down.
    """

    run: str
    release: str
    epsilon: Fraction
    mechanisms: int
    written: datetime

    @property
    def user(self) -> str:
        """The run and its release in words; a question without its text, which is another analyst's."""
        return "by a question" if self.run == ASKED else f"by run {self.run} for {self.release}"


@dataclass(frozen=True)
class Budget:
    """A privacy budget with its grants, and with what runs consumed of it.

    unit: as of `Spending`. closed: the time from which nobody spends of it; None while it is open. sources: the
    identities of the source, by its name and by what the database calls it; see `catalog.sources`. entries: how many
    were ever written, which are all there.
    """

    name: str
    unit: str | None
    entries: int
    opened: datetime
    closed: datetime | None
    grants: tuple[BudgetGrant, ...]
    sources: tuple[str, ...]
    uses: tuple[BudgetUse, ...]

    @property
    def granted(self) -> Fraction:
        """The sum of the grants."""
        return sum((grant.epsilon for grant in self.grants), Fraction(0))

    @property
    def consumed(self) -> Fraction:
        """The sum of all entries."""
        return sum((use.epsilon for use in self.uses), Fraction(0))

    @property
    def left(self) -> Fraction:
        """The amount that runs may still consume; 0 of a closed budget."""
        return Fraction(0) if self.closed is not None else self.granted - self.consumed

    def allowed(self, limit: Fraction | None) -> Fraction:
        """Return the lesser of a policy's limit and the grants."""
        return self.granted if limit is None else min(limit, self.granted)

    @property
    def is_complete(self) -> bool:
        """Tell whether no entry is missing."""
        return sum(use.mechanisms for use in self.uses) >= self.entries

    def as_json(self, entries: Sequence[BudgetEntry] | None = None) -> dict[str, Any]:
        """One object of plain values, as `--json` prints it: amounts as exact fractions; with entries, if given."""
        listed = {} if entries is None else {"mechanisms": [asdict(one) for one in entries]}
        sums = {name: getattr(self, name) for name in ("granted", "consumed", "left", "is_complete")}
        whole: dict[str, Any] = _plain({**asdict(self), "unit": self.unit or "row", **sums, **listed})
        return whole


def _plain(value: Any) -> Any:
    """Replace amounts and times within a value by their texts."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Fraction | datetime) else value


def amount(epsilon: Fraction) -> str:
    """Write a granted or consumed amount, rounded up."""
    return decimal_text(epsilon, up=True)


def remainder(epsilon: Fraction) -> str:
    """Write what is left, rounded down."""
    return decimal_text(epsilon, up=False)


def unit_text(unit: str | None) -> str:
    """Write what is protected, as in "it protects each …"."""
    return "row" if unit is None else f"person, by column '{unit}'"
