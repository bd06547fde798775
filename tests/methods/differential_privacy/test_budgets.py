"""The ledger of privacy budgets on both engines: exact sums, written ahead, never given back."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.catalog import Catalog
from sqlanon.catalog.budget_records import MechanismUse, Spending
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, BudgetError, ConflictError, EngineError, PolicyError
from tests.budgets_support import SOURCE, granted, spending, sql
from tests.random_cases import many

pytestmark = pytest.mark.slow


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


@pytest.mark.either_engine
@settings(max_examples=many(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_the_lesser_of_limit_and_grant_holds(catalog: Catalog) -> None:
    granted(catalog, "3")
    catalog.spend(spending("1", limit="1"), SOURCE)
    with pytest.raises(BudgetError, match="0 of 1 are left"):
        catalog.spend(spending("1/100", limit="1"), SOURCE)
    assert catalog.spend(spending("2", limit="5"), SOURCE).left == 0
    with pytest.raises(BudgetError, match="0 of 3 are left"):
        catalog.spend(spending("1/100", limit="5"), SOURCE)


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


@pytest.mark.either_engine
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
    steps = int(catalog.current() or "") - 6
    for revision in (f"-{steps}", "base", "0006"):
        with pytest.raises(ConflictError, match="keeps the account of people"):
            catalog.downgrade(revision)
    assert catalog.budget("people").granted == 3


def test_checking_writes_nothing(catalog: Catalog) -> None:
    before = granted(catalog)
    assert catalog.require_budget(spending("3"), SOURCE) == before
    with pytest.raises(BudgetError):
        catalog.require_budget(spending("3", "1"), SOURCE)
    assert catalog.budget("people") == before
