"""Sixty nights of a table that changes, by somebody who kept every release."""

from __future__ import annotations

import random

import pytest

from sqlanon.errors import ProtectionError
from tests.accounts.test_accounts import COLUMNS, MODELS, fill, person
from tests.accounts.test_increments import DIVERSITY, difference, policy_of, weakest
from tests.run_support import Database, Row, anonymize

pytestmark = pytest.mark.slow


INCREMENTS = {"mode": "increments"}


@pytest.mark.parametrize(
    ("k", "history", "nights"),
    [
        (5, INCREMENTS, 60),
        (10, INCREMENTS, 60),
        (5, INCREMENTS | {"departures": "retract"}, 60),
        (5, INCREMENTS | {"departures": "erase"}, 60),
        (5, {"mode": "none"}, 6),
    ],
    ids=["increments", "increments-10", "retract", "erase", "none"],
)
def test_no_difference_of_two_nights_is_below_the_models(
    database: Database, k: int, history: dict[str, str], nights: int
) -> None:
    """Rows come, go and change; with the account switched off the same differences single persons out."""
    draws = random.Random(60 + k)

    def drawn(number: int) -> Row:
        return person(number, draws.randrange(20, 60), draws.choice("abcd"), draws.choice(["flu", "rash", "gout"]))

    models = [{"model": "k-anonymity", "k": k}, MODELS[1]]
    state = {number: drawn(number) for number in range(300)}
    table = database.create(COLUMNS, list(state.values()))
    policy = policy_of(database, table, privacy=models, history=history)
    releases = [[]]
    for night in range(1, nights + 1):
        try:
            anonymize(policy, replace=True)
        except ProtectionError:
            assert history != {"mode": "none"}
        releases.append(database.sql(f"SELECT * FROM {table}_r"))
        if history.get("departures") == "erase":
            assert {row[-1] for row in releases[-1]} <= set(state)
        gone = draws.sample(sorted(state), 3)
        for number in gone[:2]:
            del state[number]
        state[gone[2]] = drawn(gone[2])
        state |= {number: drawn(number) for number in range(1000 * night, 1000 * night + draws.randrange(8))}
        fill(database, table, state)
    least = [
        weakest(changed)
        for number, earlier in enumerate(releases)
        for later in releases[number + 1 :]
        for changed in difference(earlier, later)
        if changed
    ]
    singled = [size for size, different in least if size < k or different < DIVERSITY]
    assert len({tuple(sorted(rows)) for rows in releases}) > min(nights, 10)
    assert bool(singled) is (history == {"mode": "none"})
