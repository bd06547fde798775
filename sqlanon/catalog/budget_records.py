"""Privacy budgets as the catalog keeps them, as frozen values, and the checks before one is spent or granted.

Amounts are values of epsilon, the privacy loss, as exact fractions: sums of floating-point numbers would let a run
through that the budget does not cover, or refuse one that it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from sqlanon.errors import BudgetError, PolicyError
from sqlanon.support.exact_numbers import decimal_text, round_outward

LONGEST_NAME = 100  # characters
LONGEST_REASON = 1_000  # characters
_SHOWN = 5  # runs in an error


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


def cost_text(epsilon: Fraction, budget: str) -> str:
    """Write what was consumed of a budget, rounded up."""
    return f"epsilon {amount(epsilon)} of budget {budget}"


def remainder(epsilon: Fraction) -> str:
    """Write what is left, rounded down."""
    return decimal_text(epsilon, up=False)


def unit_text(unit: str | None) -> str:
    """Write what is protected, as in "it protects each …"."""
    return "row" if unit is None else f"person, by column '{unit}'"


def require_covered(budget: Budget, spending: Spending, sources: Sequence[str], owners: Mapping[str, str]) -> None:
    """Check that a budget covers what a run would consume.

    sources: the identities of its source. owners: the budget that each known identity belongs to.

    Raises BudgetError where the amount does not suffice, PolicyError where the budget is not for this source or unit.
    """
    name = budget.name
    require_no_other(name, sources, owners)
    require_unit(budget, spending.unit)
    require_open(budget, BudgetError)
    if not budget.is_complete:
        raise BudgetError(
            f"The account of budget '{name}' is damaged: {budget.entries} entries were written, and not all are there."
            " Nothing was looked at. Restore the catalog from a backup."
        )
    if name not in (owners.get(source) for source in sources):
        raise PolicyError(
            f"The budget '{name}' was granted for another source, or this one was renamed, moved or made anew. If the"
            f" same people are in it, `sqlanon budget grant {name} --reason …` adds it to the budget; what was consumed"
            " stays consumed."
        )
    if budget.consumed + spending.epsilon > budget.allowed(spending.limit):
        raise BudgetError(_exhausted(budget, spending))


def require_no_other(name: str, sources: Sequence[str], owners: Mapping[str, str]) -> None:
    """Check that a source belongs to no other budget than the one of this name."""
    others = sorted({owners[source] for source in sources if source in owners} - {name})
    if others:
        raise PolicyError(
            f"The source has the budget '{others[0]}' already, perhaps under an earlier name, and a source has one"
            f" budget for good: use it (budget: {{ledger: {others[0]}, …}})."
        )


def budget_elsewhere(name: str, schema: str) -> str:
    """Say that a source has its budget in another catalog."""
    return (
        f"The source has the budget '{name}' already, in the catalog of schema {schema}, and a source has one budget"
        " for good: name that catalog in the policy (catalog: {schema: …})."
    )


def require_unit(budget: Budget, unit: str | None) -> None:
    """Check that a budget protects this unit."""
    if budget.unit != unit:
        raise PolicyError(
            f"The budget '{budget.name}' protects each {unit_text(budget.unit)}, and the policy each {unit_text(unit)}:"
            " amounts of the two can't be added up."
        )


def require_open(budget: Budget, error: type[BudgetError | PolicyError]) -> None:
    """Check that a budget is not closed."""
    if budget.closed is not None:
        raise error(f"The budget '{budget.name}' was closed at {budget.closed:%Y-%m-%d %H:%M} UTC, for good.")


def require_values(name: str, epsilon: Fraction, reason: str) -> None:
    """Check the values of a grant."""
    problems = []
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        problems.append(f"The name of a budget has 1 to {LONGEST_NAME} printable characters.")
    if epsilon < 0:
        problems.append("A grant can't be negative: what was granted is never taken back; close the budget instead.")
    if not reason.strip() or len(reason) > LONGEST_REASON:
        problems.append(f"A grant needs a reason, of at most {LONGEST_REASON:,} characters, for those who read it.")
    if problems:
        raise PolicyError(problems)


def no_budget(name: str) -> str:
    """Say that there is no budget of this name, and how there will be one."""
    return (
        f"There is no budget '{name}': whoever answers for the source grants one,"
        f" `sqlanon budget grant {name} --epsilon … --reason …`."
    )


def _exhausted(budget: Budget, spending: Spending) -> str:
    """Say what is left of a budget, and who consumed the rest."""
    allowed = budget.allowed(spending.limit)
    left = max(allowed - budget.consumed, Fraction(0))
    uses = [
        f"{amount(use.epsilon)} {use.user} at {use.written:%Y-%m-%d %H:%M} UTC"
        for use in reversed(budget.uses[-_SHOWN:])
    ]
    if len(budget.uses) > _SHOWN:
        uses.append(f"and {len(budget.uses) - _SHOWN} more, see `sqlanon budget show {budget.name}`")
    consumed = f"; consumed so far: {', '.join(uses)}" if uses else ""
    return (
        f"The budget '{budget.name}' does not cover what was asked for: it would consume"
        f" {amount(spending.epsilon)}, and {remainder(left)} of {remainder(allowed)} are left{consumed}. Nothing was"
        " looked at."
    )
