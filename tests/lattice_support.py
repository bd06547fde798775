"""A search over a lattice without a release: the table coded, the problem posed, everything dropped at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from sqlanon.catalog import RunStart
from sqlanon.encoding import encode
from sqlanon.engines.base import EngineOptions
from sqlanon.lattice.problem import Problem
from sqlanon.lattice.search import Wishes, pose
from sqlanon.models import from_spec
from sqlanon.plan import resolve
from sqlanon.policy import Policy
from sqlanon.session import open_session
from sqlanon.workspace import Workspace
from tests.oracle.lattice import Case
from tests.run_support import OPTIONS, Database

START = RunStart("s", "r", "{}", "test", "none", 1)


@contextlib.contextmanager
def posed(policy: Policy, options: EngineOptions = OPTIONS, wishes: Wishes | None = None) -> Iterator[Problem]:
    """The problem that a run of the policy would search."""
    with open_session(policy, options) as session:
        plan = resolve(policy, session.engine, replace=True)
        run = session.catalog.start_run(START)
        with Workspace(session.engine, session.catalog, run) as workspace:
            with session.engine.transaction():
                coded = encode(session.engine, plan, workspace)
            models = tuple(from_spec(spec) for spec in policy.privacy)
            yield pose(session.engine, workspace, coded, models, policy, lambda _: None, wishes or Wishes())


@contextlib.contextmanager
def table_of(database: Database, case: Case) -> Iterator[str]:
    """The case's table in the database; it and its release are gone at the end."""
    table = database.create(case.columns, case.rows)
    try:
        yield table
    finally:
        database.sql(f"DROP TABLE {table}")
        database.sql(f"DROP TABLE IF EXISTS {table}_r")


def for_random(
    strategy: SearchStrategy[Case], examples: Mapping[str, int]
) -> Callable[[Callable[[Database, Case], None]], Callable[[Database], None]]:
    """Make a test of a database and a case into one of many random cases; `examples` says how many on each engine."""

    def decorate(test: Callable[[Database, Case], None]) -> Callable[[Database], None]:
        def run(database: Database) -> None:
            many = settings(
                max_examples=examples[database.engine], deadline=None, suppress_health_check=list(HealthCheck)
            )
            many(given(strategy)(lambda case: test(database, case)))()

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate
