"""The ledger of privacy budgets: what was granted, and what each run consumed before it looked at its source.

A budget bounds the privacy loss of all that is ever released of a source: losses add up (sequential composition, Dwork
and Roth, The Algorithmic Foundations of Differential Privacy, 2014, theorem 3.16). So a source has one budget for good,
entries are never changed, and nothing is given back: a run that failed may have shown something all the same.
"""

from __future__ import annotations

import contextlib
import getpass
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction

from sqlanon.catalog import locks
from sqlanon.catalog.budget_records import (
    Budget,
    BudgetEntry,
    BudgetGrant,
    BudgetUse,
    Spending,
    budget_elsewhere,
    no_budget,
    require_covered,
    require_no_other,
    require_open,
    require_unit,
    require_values,
)
from sqlanon.catalog.connection import Transaction
from sqlanon.catalog.elsewhere import Elsewhere, add_sources, owners_of_sources
from sqlanon.catalog.location import database_of
from sqlanon.catalog.sources import source_identities
from sqlanon.engines.driver import Row
from sqlanon.errors import PolicyError
from sqlanon.sql import Relation
from sqlanon.support.exact_numbers import round_outward

_EXACT = dict.fromkeys(("epsilon", "sensitivity", "scale"), Fraction)  # amounts are kept as texts of fractions
_WAIT = 60.0  # seconds: an entry is written in some milliseconds


class Budgets(Elsewhere):
    """The privacy budgets of a catalog."""

    @property
    def keeps_budgets(self) -> bool:
        """Tell whether the tables of budgets are there, which a catalog of an older version lacks."""
        return self._store.resolve(self.location.relation("budgets")) is not None

    def budgets(self) -> list[Budget]:
        """All budgets, by name."""
        return self._ask(lambda transaction: _budgets(transaction))

    def budget(self, name: str) -> Budget:
        """The budget of that name.

        Raises:
            PolicyError: there is none.
        """
        return self._ask(lambda transaction: _require_budget(transaction, name))

    def budgets_of(self, sources: Iterable[str]) -> list[Budget]:
        """List the budgets of tables, each as runs record it, by what the database knows them by now."""
        identities = set[str]()
        for source in sources:
            table = self._engine.resolve(Relation.parse(source))
            identities.update(source_identities(self._engine, source, self._database, table))
        return [one for one in self.budgets() if identities.intersection(one.sources)]

    def budget_entries(self, name: str) -> list[BudgetEntry]:
        """All that was consumed of a budget, an entry a mechanism, in the order in which it was written."""
        return self._records(BudgetEntry, "budget_entries", {"budget": name}, ["number"], _EXACT)

    def identities(self, source: str, relation: Relation | None) -> tuple[str, ...]:
        """List the identities of a source of the engine's database, or of a file; see `source_identities`.

        Raises AccessError where a catalog can't be read that may hold a history or a budget of the source.
        """
        self.require_known(source)
        return source_identities(self._engine, source, self._database, relation)

    def grant_budget(
        self, name: str, epsilon: Fraction, reason: str, sources: Sequence[str], unit: str | None = None
    ) -> Budget:
        """Add an amount to the budget of a source, which is opened with the first grant; the budget after that.

        Args:
            epsilon: the amount; 0 only adds the source, as it is now, to a budget that there is.
            reason: a sentence for those who read the ledger.
            sources: the identities of the source, see `identities`.
            unit: the column of persons where these are protected; None where rows are.

        Raises:
            PolicyError: the source has another budget, the budget is closed or of another unit, or a value is wrong.
        """
        require_values(name, epsilon, reason)

        self._require_none_elsewhere(sources)

        def grant(transaction: Transaction) -> Budget:
            now = datetime.now(UTC)
            require_no_other(name, sources, owners_of_sources(transaction, "budget"))
            known = next(iter(_budgets(transaction, name)), None)
            if known is None:
                if not epsilon:
                    raise PolicyError(f"There is no budget '{name}' yet: its first grant needs an epsilon above 0.")
                opening = {"name": name, "unit": unit, "entries": 0, "opened": now, "closed": None}
                transaction.insert("budgets", [opening])
            else:
                require_open(known, PolicyError)
                require_unit(known, unit)
            number = 1 if known is None else len(known.grants) + 1
            granted = BudgetGrant(name, number, epsilon, getpass.getuser(), reason, now)
            transaction.insert("budget_grants", [vars(granted)])
            add_sources(transaction, "budget", name, sources, now)
            return _require_budget(transaction, name)

        with self._budgets_alone():
            return self._connection.do("record the grant", grant)

    def close_budget(self, name: str) -> Budget:
        """Close a budget for good: nobody spends of it any more, nor is anything granted; the budget after that.

        Raises:
            PolicyError: there is none, or it is closed.
        """

        def close(transaction: Transaction) -> Budget:
            require_open(_require_budget(transaction, name), PolicyError)
            transaction.update("budgets", {"name": name}, closed=datetime.now(UTC))
            return _require_budget(transaction, name)

        with self._budgets_alone():
            return self._connection.do("close the budget", close)

    def require_budget(self, spending: Spending, sources: Sequence[str]) -> Budget:
        """Return the budget that a run would spend of; nothing is written.

        Raises as `spend` does.
        """
        self._require_none_elsewhere(sources)
        return self._ask(lambda transaction: _covered(transaction, spending, sources))

    def spend(self, spending: Spending, sources: Sequence[str]) -> Budget:
        """Write down, for good, what a run is about to consume, in a transaction of its own; the budget after that.

        Call it before the first look at the source; if it raises, don't look. Two runs at once can't consume more than
        there is: one waits for the other. Every call writes entries anew, also for a run that it was called for before.

        Args:
            sources: the identities of the source, see `identities`.

        Raises:
            BudgetError: the budget does not cover it, or is closed, or the account is damaged.
            PolicyError: there is no such budget, or it is of another source or unit.
            AccessError, EngineError, ConflictError: the ledger can't be written.
        """
        if not spending.uses or any(use.epsilon <= 0 for use in spending.uses):
            raise ValueError("a mechanism has a privacy loss above 0")
        self._require_none_elsewhere(sources)

        def write(transaction: Transaction) -> Budget:
            if not self._store.traits.is_embedded:
                transaction.execute("commit_durably")
            transaction.rows("lock_budget", {"name": spending.budget})
            written = _covered(transaction, spending, sources).entries
            transaction.update("budgets", {"name": spending.budget}, entries=written + len(spending.uses))
            now = datetime.now(UTC)
            of_run = {"budget": spending.budget, "run": spending.run, "release": spending.release, "written": now}
            entries = [
                {**of_run, "number": number, **vars(use), "epsilon": round_outward(use.epsilon)}
                for number, use in enumerate(spending.uses, written + 1)
            ]
            transaction.insert("budget_entries", entries)
            add_sources(transaction, "budget", spending.budget, sources, now)
            return _require_budget(transaction, spending.budget)

        with self._budgets_alone():
            return self._connection.do("write down what the run consumes, so that nothing was looked at", write)

    def _require_none_elsewhere(self, sources: Sequence[str]) -> None:
        """Refuse a source that has a budget in another catalog."""
        for location, owners in self._owners_elsewhere("budget"):
            if names := sorted({owners[source] for source in sources if source in owners}):
                raise PolicyError(budget_elsewhere(names[0], location.shown))

    @contextlib.contextmanager
    def _budgets_alone(self) -> Iterator[None]:
        """Let nobody else write budgets of this catalog meanwhile; who does is waited for.

        On PostgreSQL the row that is updated first would do. DuckDB refuses the second of two updates at once.
        """
        conflict = "Another run has been writing the ledger of budgets for a minute: run again when it has ended."
        name = f"budgets of {self.location.name} of {database_of(self._store)}"
        with locks.held(self._store, name, conflict, wait=_WAIT):
            yield


def _budgets(transaction: Transaction, name: str | None = None) -> list[Budget]:
    columns = ("name", "unit", "entries", "opened", "closed")
    rows = transaction.select("budgets", columns, {} if name is None else {"name": name}, ["name"])
    owners = owners_of_sources(transaction, "budget") if rows else {}
    return [_budget(transaction, row, owners) for row in rows]


def _budget(transaction: Transaction, row: Row, owners: Mapping[str, str]) -> Budget:
    name = row["name"]
    grants = transaction.records(BudgetGrant, "budget_grants", {"budget": name}, ["number"], {"epsilon": Fraction})
    return Budget(
        **row,
        grants=tuple(grants),
        sources=tuple(identity for identity, owner in owners.items() if owner == name),
        uses=_uses(transaction.rows("select_budget_uses", {"name": name})),
    )


def _uses(rows: Sequence[Row]) -> tuple[BudgetUse, ...]:
    """Add up the amounts of each run; rows are in the order of their first entries."""
    uses: dict[tuple[str, str], BudgetUse] = {}
    for row in rows:
        key, epsilon = (row["run"], row["release"]), Fraction(row["epsilon"]) * row["uses"]
        before = uses.get(key)
        if before is None:
            uses[key] = BudgetUse(*key, epsilon, row["uses"], row["written"])
        else:
            uses[key] = BudgetUse(*key, before.epsilon + epsilon, before.mechanisms + row["uses"], before.written)
    return tuple(uses.values())


def _require_budget(transaction: Transaction, name: str) -> Budget:
    budget = next(iter(_budgets(transaction, name)), None)
    if budget is None:
        raise PolicyError(no_budget(name))
    return budget


def _covered(transaction: Transaction, spending: Spending, sources: Sequence[str]) -> Budget:
    budget = _require_budget(transaction, spending.budget)
    require_covered(budget, spending, sources, owners_of_sources(transaction, "budget"))
    return budget
