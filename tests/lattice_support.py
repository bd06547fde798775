"""A search over a lattice without a release: the table coded, the problem built, everything dropped at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.encoding.frequency.task import Verdict
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.generalization.explore.build_problem import build_problem as open_problem
from sqlanon.methods.generalization.lattice.node_checks import count_suppressed_each, settle
from sqlanon.methods.generalization.lattice.problem import Problem
from sqlanon.policy import Policy
from tests.oracle.lattice import Case
from tests.run_support import OPTIONS, Database


@contextlib.contextmanager
def build_problem(
    policy: Policy, options: EngineOptions = OPTIONS, search_options: SearchOptions | None = None
) -> Iterator[Problem]:
    """The problem that a run of the policy would search."""
    with open_problem(policy, options, search_options) as found:
        yield found.problem


def check_node(sets: FrequencySets, node: Node) -> Verdict:
    """The verdict of `FrequencySets.check`, where the generalization is within the budget.

    Otherwise the suppressed rows and the floor are lower bounds, of which the first is over the budget.
    """
    (verdict,) = count_suppressed_each(sets, [node])
    return settle(sets, node, verdict)


@contextlib.contextmanager
def table_of(database: Database, case: Case) -> Iterator[str]:
    """The case's table in the database; it and its release are gone at the end."""
    table = database.create(case.columns, case.rows)
    try:
        yield table
    finally:
        database.sql(f"DROP TABLE {table}")
        database.sql(f"DROP TABLE IF EXISTS {table}_r")
