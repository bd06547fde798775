"""Many random cases inside of one test, so that a database is made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from tests.run_support import Database

Check = Callable[..., None]


def random_cases(examples: int, *strategies: SearchStrategy[Any]) -> Callable[[Check], Callable[[], None]]:
    """Make a function of what the strategies draw into one without arguments, which tries so many examples."""
    many = settings(max_examples=examples, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    return lambda check: many(given(*strategies)(check))


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
