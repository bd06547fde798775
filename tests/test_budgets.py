"""The ledger of privacy budgets on both engines: exact sums, written ahead, never given back, never overdrawn."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.catalog import Catalog, locks
from sqlanon.catalog.budget_records import Budget, MechanismUse, Spending
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, BudgetError, ConflictError, EngineError, PolicyError
from sqlanon.sql import Relation, Statement
from tests.random_cases import many

SOURCE = ("table people of here",)


@pytest.fixture
def catalog(engine: Engine) -> Iterator[Catalog]:
    with Catalog.open(engine) as opened:
        yield opened


def sql(engine: Engine, text: str) -> None:
    engine.execute(Statement("test", text))


def spending(
    *amounts: str, limit: str = "3", budget: str = "people", unit: str | None = None, run: str = "r_1"
) -> Spending:
    uses = [MechanismUse("laplace", Fraction(one), Fraction(1), 1 / Fraction(one)) for one in amounts]
    return Spending(budget, Fraction(limit), unit, run, '"main"."people_dp"', tuple(uses))


def granted(catalog: Catalog, epsilon: str = "3", name: str = "people", unit: str | None = None) -> Budget:
    return catalog.grant_budget(name, Fraction(epsilon), "the ethics board's decision 7", SOURCE, unit)


def test_a_budget_is_kept_from_its_grant_to_its_end(catalog: Catalog) -> None:
    opened = granted(catalog)
    assert (opened.granted, opened.consumed, opened.left, opened.closed) == (3, 0, 3, None)
    after = catalog.spend(spending("1", "1/2"), SOURCE)
    assert (after.consumed, after.left) == (Fraction(3, 2), Fraction(3, 2))
    (use,) = after.uses
    assert (use.run, use.release, use.epsilon, use.mechanisms) == ("r_1", '"main"."people_dp"', Fraction(3, 2), 2)
    entries = catalog.budget_entries("people")
    assert [(one.number, one.mechanism, one.epsilon, one.scale) for one in entries] == [
        (1, "laplace", 1, 1),
        (2, "laplace", Fraction(1, 2), 2),
    ]
    assert granted(catalog, "1/3").granted == Fraction(10, 3)
    closed = catalog.close_budget("people")
    assert (closed.left, closed.consumed, closed.closed is not None) == (0, Fraction(3, 2), True)
    assert catalog.budgets() == [closed]
    for refused, call in (
        (BudgetError, lambda: catalog.spend(spending("1"), SOURCE)),
        (PolicyError, lambda: granted(catalog)),
        (PolicyError, lambda: catalog.close_budget("people")),
    ):
        with pytest.raises(refused, match="was closed at"):
            call()
    assert catalog.budgets() == [closed]


def test_sums_are_exact(catalog: Catalog) -> None:
    """Ten times 0.1 are 1, which floating-point numbers miss, and not the least part more is left."""
    granted(catalog, "1")
    for number in range(10):
        catalog.spend(spending("0.1", limit="1", run=f"r_{number}"), SOURCE)
    assert catalog.budget("people").left == 0
    with pytest.raises(BudgetError, match="are left"):
        catalog.spend(spending("1e-25", limit="1"), SOURCE)


@settings(max_examples=many(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.fractions("1/900", 1, max_denominator=997), min_size=1, max_size=3), min_size=1, max_size=8),
    st.fractions(1, 3, max_denominator=50),
)
def test_what_runs_consume_is_what_fits(engine: Engine, asked: list[list[Fraction]], limit: Fraction) -> None:
    """Held against sums of fractions: a run is let through exactly if it and all before come to the limit at most."""
    with Catalog.open(engine) as catalog:
        name = f"budget {len(catalog.budgets())}"
        source = (f"table {name}",)
        catalog.grant_budget(name, limit, "a test", source)
        consumed = Fraction(0)
        for number, amounts in enumerate(asked):
            wanted = spending(*map(str, amounts), limit=str(limit), budget=name, run=f"r_{number}")
            if consumed + sum(amounts) <= limit:
                consumed += sum(amounts)
                assert catalog.spend(wanted, source).consumed == consumed
            else:
                with pytest.raises(BudgetError):
                    catalog.spend(wanted, source)
        assert catalog.budget(name).consumed == sum(one.epsilon for one in catalog.budget_entries(name)) == consumed


def test_a_number_that_is_too_long_is_rounded_up(catalog: Catalog) -> None:
    granted(catalog)
    exact = Fraction(1, 3**80)
    assert exact < catalog.spend(spending(str(exact)), SOURCE).consumed == Fraction(1, 10**30)


def test_an_exhausted_budget_says_who_consumed_it(catalog: Catalog) -> None:
    granted(catalog)
    for number in range(7):
        catalog.spend(spending("1/3", run=f"r_{number}"), SOURCE)
    with pytest.raises(BudgetError) as raised:
        catalog.spend(spending("2/3", "1/3"), SOURCE)
    assert raised.value.exit_code == 3
    assert "would consume 1, and 0.666666 of 3 are left" in str(raised.value)
    assert '0.333334 by run r_6 for "main"."people_dp" at 20' in str(raised.value)
    assert "run r_1 " not in str(raised.value)
    assert "2 more, see `sqlanon budget show people`" in str(raised.value)


def test_the_limit_of_a_policy_holds_below_the_grant(catalog: Catalog) -> None:
    granted(catalog, "3")
    catalog.spend(spending("1", limit="1"), SOURCE)
    with pytest.raises(BudgetError, match="0 of 1 are left"):
        catalog.spend(spending("1/100", limit="1"), SOURCE)
    with pytest.raises(PolicyError, match=r"limit is 3\.5, and the grants of budget 'people' come to 3\."):
        catalog.spend(spending("1", limit="3.5"), SOURCE)
    assert catalog.spend(spending("2"), SOURCE).left == 0


def test_a_run_without_a_budget_is_refused(catalog: Catalog) -> None:
    with pytest.raises(PolicyError, match=r"no budget 'people'.*budget grant people"):
        catalog.spend(spending("1"), SOURCE)
    with pytest.raises(PolicyError, match="first grant needs an epsilon above 0"):
        granted(catalog, "0")
    assert catalog.budgets() == []


def test_rows_and_persons_are_not_added_up(catalog: Catalog) -> None:
    granted(catalog, unit="person")
    with pytest.raises(PolicyError, match="protects each person, by column 'person', and the policy each row"):
        catalog.spend(spending("1"), SOURCE)
    with pytest.raises(PolicyError, match="can't be added up"):
        granted(catalog)
    assert catalog.spend(spending("1", unit="person"), SOURCE).left == 2


def test_a_source_has_one_budget(catalog: Catalog) -> None:
    granted(catalog, "1")
    catalog.spend(spending("1", limit="1"), SOURCE)
    with pytest.raises(PolicyError, match="has the budget 'people' already"):
        granted(catalog, "5", name="people again")
    catalog.close_budget("people")
    with pytest.raises(PolicyError, match="has the budget 'people' already"):
        granted(catalog, "5", name="people again")
    catalog.grant_budget("others", Fraction(1), "other people", ("table others of here",))
    with pytest.raises(PolicyError, match="has the budget 'people' already"):
        catalog.spend(spending("1", limit="1", budget="others"), ("table others of here", *SOURCE))
    assert [one.name for one in catalog.budgets()] == ["others", "people"]


@pytest.mark.parametrize(
    ("name", "epsilon", "reason", "problem"),
    [
        ("", "1", "why", "1 to 100 printable"),
        ("a\nb", "1", "why", "1 to 100 printable"),
        ("a" * 101, "1", "why", "1 to 100 printable"),
        ("people", "-1", "why", "can't be negative"),
        ("people", "1", "  ", "needs a reason"),
    ],
)
@pytest.mark.either_engine
def test_wrong_grants_are_refused(catalog: Catalog, name: str, epsilon: str, reason: str, problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        catalog.grant_budget(name, Fraction(epsilon), reason, SOURCE)
    assert catalog.budgets() == []


@pytest.mark.either_engine
def test_a_mechanism_without_a_loss_is_no_mechanism(catalog: Catalog) -> None:
    granted(catalog)
    for uses in ((), (MechanismUse("laplace", Fraction(0), Fraction(1), Fraction(1)),)):
        with pytest.raises(ValueError, match="above 0"):
            catalog.spend(Spending("people", Fraction(3), None, "r", "x", uses), SOURCE)
    assert catalog.budget("people").consumed == 0


def test_a_run_that_fails_has_spent(catalog: Catalog, engine: Engine) -> None:
    """The entries are in a transaction of their own, and a retry consumes anew."""
    granted(catalog)
    for _ in range(2):
        with contextlib.suppress(RuntimeError), engine.transaction():
            catalog.spend(spending("1"), SOURCE)
            raise RuntimeError
    budget = catalog.budget("people")
    assert (budget.consumed, [use.mechanisms for use in budget.uses]) == (2, [2])


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
        runs = [
            subprocess.Popen(
                [sys.executable, "-c", SPENDER, postgres_url, str(number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(3)
        ]
        for run in runs:
            assert run.stdout is not None
            assert run.stdout.readline() == "ready\n"
        for run in runs:
            assert run.stdin is not None
            run.stdin.write("go\n")
            run.stdin.flush()
        assert sum(int(run.communicate(timeout=60)[0]) for run in runs) == 20
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


def test_a_ledger_that_cannot_be_written_stops_the_run(engine: Engine, catalog: Catalog) -> None:
    granted(catalog)
    sql(engine, "ALTER TABLE sqlanon.budget_entries RENAME TO elsewhere")
    with pytest.raises(EngineError, match="could not write down what the run consumes, so that nothing was looked at"):
        catalog.spend(spending("1"), SOURCE)


def test_a_role_that_may_only_read_does_not_spend(postgres_url: str) -> None:
    with connect(postgres_url) as engine, Catalog.open(engine) as catalog:
        granted(catalog)
        sql(engine, "REVOKE INSERT, UPDATE ON sqlanon.budget_entries FROM CURRENT_USER")
        sql(engine, "ALTER ROLE CURRENT_USER SET default_transaction_read_only = on")
        try:
            with (
                connect(postgres_url) as reading,
                Catalog.open(reading, upgrade=False) as other,
                pytest.raises(AccessError),
            ):
                other.spend(spending("1"), SOURCE)
        finally:
            sql(engine, "ALTER ROLE CURRENT_USER RESET default_transaction_read_only")
        assert catalog.budget("people").consumed == 0


def test_an_entry_that_is_missing_is_noticed(engine: Engine, catalog: Catalog) -> None:
    granted(catalog)
    catalog.spend(spending("1", "1"), SOURCE)
    sql(engine, "DELETE FROM sqlanon.budget_entries WHERE number = 1")
    for call in (catalog.spend, catalog.require_budget):
        with pytest.raises(BudgetError, match="damaged: 2 entries were written"):
            call(spending("1"), SOURCE)


def test_a_catalog_with_budgets_is_not_downgraded(catalog: Catalog) -> None:
    granted(catalog)
    for revision in ("-1", "base", "0006"):
        with pytest.raises(ConflictError, match="keeps the account of people"):
            catalog.downgrade(revision)
    assert catalog.budget("people").granted == 3


def test_checking_writes_nothing(catalog: Catalog) -> None:
    before = granted(catalog)
    assert catalog.require_budget(spending("3"), SOURCE) == before
    with pytest.raises(BudgetError):
        catalog.require_budget(spending("3", "1"), SOURCE)
    assert catalog.budget("people") == before


def people(engine: Engine, name: str = "people") -> Relation:
    found = engine.resolve(Relation.parse(name))
    assert found is not None
    return found


def known(catalog: Catalog, engine: Engine, name: str = "people") -> tuple[str, ...]:
    return catalog.identities(str(people(engine, name)), people(engine, name))


def test_a_renamed_table_gets_no_new_budget(engine: Engine, catalog: Catalog, engine_name: str) -> None:
    """PostgreSQL knows the table by its number still. DuckDB keeps none, so that somebody has to say what it is."""
    sql(engine, "CREATE TABLE people (a INTEGER)")
    catalog.grant_budget("people", Fraction(3), "a test", known(catalog, engine))
    catalog.spend(spending("1"), known(catalog, engine))
    sql(engine, "ALTER TABLE people RENAME TO folk")
    renamed = known(catalog, engine, "folk")
    with pytest.raises(PolicyError):
        catalog.spend(spending("1", budget="folk"), renamed)
    if engine_name == "postgres":
        with pytest.raises(PolicyError, match="has the budget 'people' already, perhaps under an earlier name"):
            catalog.grant_budget("folk", Fraction(3), "again", renamed)
        assert catalog.spend(spending("1"), renamed).consumed == 2
    else:
        with pytest.raises(PolicyError, match="granted for another source, or this one was renamed"):
            catalog.spend(spending("1"), renamed)
        catalog.grant_budget("people", Fraction(0), "it was renamed", renamed)
        assert catalog.spend(spending("1"), renamed).consumed == 2


def test_a_table_that_is_made_anew_every_night_keeps_its_budget(engine: Engine, catalog: Catalog) -> None:
    sql(engine, "CREATE TABLE people (a INTEGER)")
    catalog.grant_budget("people", Fraction(3), "a test", known(catalog, engine))
    for night in range(2):
        sql(engine, "DROP TABLE people")
        sql(engine, "CREATE TABLE people (a INTEGER)")
        assert catalog.spend(spending("1"), known(catalog, engine)).consumed == night + 1
    sql(engine, "ALTER TABLE people RENAME TO folk")
    with pytest.raises(PolicyError):  # the number that it got in the last night is known, too
        catalog.spend(spending("1", budget="folk"), known(catalog, engine, "folk"))


def test_a_copy_of_a_table_needs_a_grant(engine: Engine, catalog: Catalog) -> None:
    sql(engine, "CREATE TABLE people (a INTEGER)")
    catalog.grant_budget("people", Fraction(3), "a test", known(catalog, engine))
    sql(engine, "CREATE TABLE copied AS SELECT * FROM people")
    with pytest.raises(PolicyError, match="granted for another source"):
        catalog.spend(spending("1"), known(catalog, engine, "copied"))


@pytest.mark.either_engine
def test_files_are_known_by_their_whole_paths(
    catalog: Catalog, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path_factory.mktemp("files")
    (place / "people.csv").write_text("a\n1\n")
    (place / "link.csv").symlink_to(place / "people.csv")
    monkeypatch.chdir(place)
    whole = catalog.identities(str(place / "people.csv"), None)
    assert catalog.identities("people.csv", None) == catalog.identities("link.csv", None) == whole
    assert str(place) not in str(whole)
    with pytest.raises(PolicyError, match="a new one each time"):
        catalog.identities("-", None)
