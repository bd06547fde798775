"""A search over a lattice without a release: the table coded, the problem posed, everything dropped at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

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
from tests.run_support import OPTIONS

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
