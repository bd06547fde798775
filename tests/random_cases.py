"""Many random cases inside of one test, so that a database is made once.

SQLANON_TEST_EXAMPLES=10 has all random tests try ten times as many as they do by default, and tests for either engine
run on both. SQLANON_TEST_ALL=1 has every test run; by default those of modules that are marked as slow are left out.
SQLANON_TEST_SEED=n has tests that draw their cases by a number draw them by n; where it is not given a run draws the
number, and prints it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
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
    """Tell whether slow tests are to run too."""
    return os.environ.get("SQLANON_TEST_ALL") == "1"


def draw_seed() -> None:
    """Draw the number by which tests draw, where none is given; processes that are started from here have the same."""
    os.environ.setdefault("SQLANON_TEST_SEED", str(secrets.randbelow(1_000_000)))


def seed() -> int:
    """The number by which tests draw their cases."""
    return int(os.environ["SQLANON_TEST_SEED"])


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
