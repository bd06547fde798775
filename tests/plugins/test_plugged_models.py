"""A privacy model of an installed package: searched, verified, reported."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import strategies as st

from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.policy.loading import parse_stored
from sqlanon.policy.writer import policy_text
from sqlanon.report.queries import run_report
from tests.plugins.support import COLUMNS, DEASSOCIATION, K2, ROLES, ROWS, SORTED_RUNS, policy_with
from tests.random_cases import for_random
from tests.run_support import Database, Row, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

TREES_AND_LATTICES = ["mondrian", "optimal", "incognito", "top-down"]
CASES = st.tuples(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("ab"), st.sampled_from([*"xyz", None])), min_size=2),
    st.sampled_from([0.3, 0.5, 0.75, 1.0]),
)


def commonest(rows: list[Row]) -> Fraction:
    """The greatest part of a class that has one value, NULLs as the commonest one, over all classes of a release."""
    classes: dict[Row, Counter[str | None]] = defaultdict(Counter)
    for *shown, value in rows:
        classes[tuple(shown)][value] += 1
    return max(Fraction(max([*_known(c), 0]) + c[None], c.total()) for c in classes.values())


def _known(counts: Counter[str | None]) -> list[int]:
    return [count for value, count in counts.items() if value is not None]


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("algorithm", TREES_AND_LATTICES)
def test_a_model_of_a_package_is_searched_and_verified(database: Database, algorithm: str) -> None:
    table = database.create(COLUMNS, ROWS)
    wanted = {"privacy": [K2, DEASSOCIATION], "algorithm": {"name": algorithm}}
    rows = database.release(table, ROLES, **wanted)
    assert len(rows) == len(ROWS)
    assert commonest(rows) <= Fraction(1, 2)
    plain = database.release(table, ROLES, **wanted | {"privacy": [K2]})
    assert commonest(plain) > Fraction(1, 2)  # so it was the model that made the difference


@pytest.mark.usefixtures("example")
@for_random(CASES, {"duckdb": 6, "postgres": 4})
def test_no_value_is_too_common_in_any_class(database: Database, case: tuple[list[Row], float]) -> None:
    rows, alpha = case
    most = Fraction(str(alpha))
    released = database.release_once(COLUMNS, rows, ROLES, privacy=[{**DEASSOCIATION, "alpha": alpha}])
    assert (released is None) == (commonest([("", "", row[2]) for row in rows]) > most)
    assert released is None or commonest(released) <= most


@pytest.mark.usefixtures("example")
def test_no_release_can_meet_it(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(ProtectionError, match=r"deassociation .* Attainable: alpha: 0.4"):
        database.release(table, ROLES, privacy=[{**DEASSOCIATION, "alpha": 0.2}])


@pytest.mark.usefixtures("example")
def test_the_report_has_the_sentence_of_the_model(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES, privacy=[K2, DEASSOCIATION])
    run = anonymize(policy).run
    assert "In every class at most 50% of the rows share a value of “s”. NULL adds no diversity." in run_report(
        run, policy=policy
    )


def test_without_the_package_its_model_is_unknown() -> None:
    with pytest.raises(PolicyError, match="'deassociation' is unknown"):
        policy_with(DEASSOCIATION)


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ({"alpha": 0}, r"privacy\[0\].alpha must be a number greater than 0"),
        ({"alpha": "much"}, r"privacy\[0\].alpha must be a number greater than 0"),
        ({"beta": 1}, r"privacy\[0\].beta: unknown key 'beta'; choose from 'model', 'attribute', 'alpha'"),
        ({"attribute": "age"}, r"privacy\[0\].attribute: 'age' has role quasi-identifier"),
    ],
)
def test_wrong_parameters_are_named(model: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        policy_with({**DEASSOCIATION, **model})


@pytest.mark.usefixtures("example")
def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(PolicyError, match=r"privacy\[0\]: alpha is missing; deassociation needs it"):
        policy_with({"model": "deassociation", "attribute": "s"})


@pytest.mark.usefixtures("example")
def test_a_policy_with_it_survives_its_text() -> None:
    policy = policy_with(K2, DEASSOCIATION, algorithm={**SORTED_RUNS, "growth": 3})
    stored = parse_stored(policy_text(policy))
    assert (stored.privacy, stored.algorithm) == (policy.privacy, policy.algorithm)


@pytest.mark.usefixtures("example")
def test_samples_refuse_a_model_without_a_test(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(PolicyError, match="no test on samples; use rothko-t"):
        database.release(table, ROLES, privacy=[DEASSOCIATION], algorithm={"name": "rothko-s"})
