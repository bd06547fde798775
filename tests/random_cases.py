"""Many random cases inside of one test, so that a database is made once.

SQLANON_TEST_EXAMPLES=10 has all random tests try ten times as many as they do by default, and tests of which the
engine does not matter run on both. SQLANON_TEST_TURN=n has other variants drawn for each number n. SQLANON_TEST_ALL=1
has every test run, with all variants, on each engine that it is for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from tests.run_support import Database

Check = Callable[..., None]
T = TypeVar("T")


def many(examples: int) -> int:
    """Scale the default number of a random test's examples by SQLANON_TEST_EXAMPLES."""
    return max(1, round(examples * float(os.environ.get("SQLANON_TEST_EXAMPLES", "1"))))


def everything() -> bool:
    """Tell whether every variant of every test is to run."""
    return os.environ.get("SQLANON_TEST_ALL") == "1" or many(1) > 1


def turn() -> int:
    """The number by which variants are drawn: who counts it up has all of them after some turns."""
    return int(os.environ.get("SQLANON_TEST_TURN", "0"))


def some_of(variants: Sequence[T], count: int, every: int = 1) -> list[T]:
    """So many of the variants that tell the same, evenly spread, more by SQLANON_TEST_EXAMPLES.

    Others are drawn each turn, or `every` so many: of a test that has its turn as seldom, all variants are run in time.
    """
    count = len(variants) if everything() else min(many(count), len(variants))
    drawn = turn() // every
    return [variants[(place * len(variants) // count + drawn) % len(variants)] for place in range(count)]


def random_cases(examples: int, *strategies: SearchStrategy[Any]) -> Callable[[Check], Callable[[], None]]:
    """Make a function of what the strategies draw into one without arguments, which tries so many examples."""
    wanted = {"max_examples": many(examples), "deadline": None, "print_blob": True}
    quick = settings(**wanted, suppress_health_check=list(HealthCheck))
    return lambda check: quick(given(*strategies)(check))


def for_random(
    strategy: SearchStrategy[Any], examples: Mapping[str, int]
) -> Callable[[Callable[[Database, Any], None]], Callable[[Database], None]]:
    """Make a test of a database and a case into one of many random cases; `examples` says how many on each engine."""

    def decorate(test: Callable[[Database, Any], None]) -> Callable[[Database], None]:
        def run(database: Database) -> None:
            random_cases(examples[database.engine], strategy)(lambda case: test(database, case))()

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate
