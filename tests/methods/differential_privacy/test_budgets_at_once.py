"""Budgets that several runs spend of at once, and runs that are killed: none is overdrawn, nothing is forgotten."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from fractions import Fraction

import pytest

from sqlanon.catalog import Catalog, locks
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import BudgetError, ConflictError, EngineError
from tests.budgets_support import SOURCE, granted, spending
from tests.processes import run_together

pytestmark = pytest.mark.slow

KILLED = """
import os, sys
from fractions import Fraction
from sqlanon.catalog import Catalog
from sqlanon.catalog.budget_records import MechanismUse, Spending
from sqlanon.engines import connect
engine = connect(sys.argv[1])
catalog = Catalog.open(engine)
catalog.grant_budget("people", Fraction(3), "a test", ["table people of here"])
use = MechanismUse("laplace", Fraction(1), Fraction(1), Fraction(1))
catalog.spend(Spending("people", Fraction(3), None, "r_1", "people_dp", (use,)), ["table people of here"])
os._exit(9)
"""


@pytest.mark.either_engine
def test_a_killed_run_has_spent(database_url: str) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, database_url], check=False, timeout=60).returncode == 9
    with connect(database_url) as engine, Catalog.open(engine) as catalog:
        assert catalog.budget("people").consumed == 1


def compete(catalogs: list[Catalog], amount: str, limit: str) -> list[bool]:
    """Let each catalog spend at the same time until the budget is exhausted; each success counts, no conflict does."""
    successes: list[bool] = []
    barrier = threading.Barrier(len(catalogs))

    def work(number: int, catalog: Catalog) -> None:
        barrier.wait()
        for attempt in range(100):
            try:
                catalog.spend(spending(amount, limit=limit, run=f"r_{number}_{attempt}"), SOURCE)
            except BudgetError:
                return
            except EngineError:
                continue
            successes.append(True)

    threads = [threading.Thread(target=work, args=one) for one in enumerate(catalogs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return successes


def test_threads_do_not_overdraw_a_budget_together(engine: Engine) -> None:
    """With a catalog each, and with one for all."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Catalog.open(engine))
        others = [stack.enter_context(Catalog.open(engine.fork())) for _ in range(3)]
        granted(first, "2")
        assert len(compete([first, first, *others], "0.1", "2")) == 20
        budget = first.budget("people")
        assert (budget.left, budget.entries, len(budget.uses)) == (0, 20, 20)


def test_the_row_of_the_budget_is_a_lock_of_its_own(
    engine: Engine, engine_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the lock of a session, as if it was lost: PostgreSQL lets one wait for the other, DuckDB refuses one."""
    monkeypatch.setattr(locks, "held", lambda *_, **__: contextlib.nullcontext())
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Catalog.open(engine))
        others = [stack.enter_context(Catalog.open(engine.fork())) for _ in range(3)]
        granted(first, "2")
        succeeded = len(compete([first, *others], "0.1", "2"))
        budget = first.budget("people")
        assert budget.entries == succeeded <= 20
        assert engine_name == "duckdb" or succeeded == 20
        assert budget.consumed == Fraction(succeeded, 10)


SPENDER = """
import sys
from fractions import Fraction
from sqlanon.catalog import Catalog
from sqlanon.catalog.budget_records import MechanismUse, Spending
from sqlanon.engines import connect
from sqlanon.errors import BudgetError
with connect(sys.argv[1]) as engine, Catalog.open(engine) as catalog:
    print("ready", flush=True)
    sys.stdin.readline()
    use = MechanismUse("laplace", Fraction(1, 10), Fraction(1), Fraction(10))
    spent = 0
    try:
        while True:
            spending = Spending("people", Fraction(2), None, f"r_{sys.argv[2]}", "x", (use,))
            catalog.spend(spending, ["table people of here"])
            spent += 1
    except BudgetError:
        print(spent)
"""


def test_processes_do_not_overdraw_a_budget_together(postgres_url: str) -> None:
    with connect(postgres_url) as engine, Catalog.open(engine) as catalog:
        granted(catalog, "2")
        ends = run_together(SPENDER, [[postgres_url, str(number)] for number in range(3)])
        assert sum(int(spent) for spent, _ in ends) == 20
        assert catalog.budget("people").left == 0


def test_a_budget_that_is_held_too_long_is_a_conflict(
    engine: Engine, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted(catalog)
    monkeypatch.setattr("sqlanon.catalog.budgets._WAIT", 0.0)
    with (
        Catalog.open(engine.fork()) as other,
        other._budgets_alone(),
        pytest.raises(ConflictError, match="Another run"),
    ):
        catalog.spend(spending("1"), SOURCE)
    assert catalog.budget("people").consumed == 0
