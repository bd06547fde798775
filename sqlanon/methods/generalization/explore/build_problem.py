"""A policy's lattice problem over its source, for whoever searches without a release.

Nothing is written but work tables: on DuckDB temporary ones; on PostgreSQL those of a run, which the catalog records
as `dry`, so that `gc` clears what a kill leaves.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlanon.algorithms import SearchRequest, algorithm_of
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.catalog import NO_RELEASE, RunStart, Status
from sqlanon.encoding.coded_table import encode
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.methods.generalization.lattice.problem import Problem
from sqlanon.methods.generalization.lattice.search import lattice_problem
from sqlanon.models import PrivacyModel, models_by_rows, models_of
from sqlanon.models.k_anonymity import KPersons
from sqlanon.plan.persons import require_models_by_rows
from sqlanon.plan.plan import Plan, resolve_source
from sqlanon.plan.population import hold_population
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy, seed_of
from sqlanon.policy.writer import policy_text
from sqlanon.runs.recording import record_end
from sqlanon.work.control import Control
from sqlanon.work.journal import Journal, Silent, status_after
from sqlanon.work.session import open_catalog
from sqlanon.work.workspace import TemporaryWorkspace, Workspace


@dataclass(frozen=True)
class OpenProblem:
    """A problem, the plan it comes from, and when work on it began (`time.perf_counter()`)."""

    plan: Plan
    problem: Problem
    started: float


@contextlib.contextmanager
def build_problem(
    policy: Policy,
    options: EngineOptions | None = None,
    search_options: SearchOptions | None = None,
    journal: Journal | None = None,
) -> Iterator[OpenProblem]:
    """Encode the policy's source and build its lattice problem; everything is dropped at the end.

    Raises PolicyError if the policy doesn't fit the table, AccessError if the source may not be read.
    """
    require_models_by_rows(policy, "the exploration of a lattice")
    with connect(policy.source.url or MEMORY_URL, options) as engine:
        engine.require_writable()
        with build_problem_in(engine, policy, search_options, journal) as opened:
            yield opened


@contextlib.contextmanager
def build_problem_in(
    engine: Engine, policy: Policy, search_options: SearchOptions | None = None, journal: Journal | None = None
) -> Iterator[OpenProblem]:
    """Do the same in an open session with the source's database."""
    journal = journal or Journal(Silent())
    engine.listener = journal.note
    with journal.during("plan"):
        version = engine.file_version(policy.source.file)
        plan = resolve_source(policy, engine)
    with _workspace(plan, engine, journal) as workspace:
        with journal.during("encode"), engine.transaction():
            hold_trusted(policy, engine, plan.source)
            hold_population(policy, engine)
            coded = encode(engine, _without_kept_columns(plan), workspace, whole=False)
        engine.require_unchanged(policy.source.file, version)
        with journal.during("search"):
            started = time.perf_counter()
            models = _models_of_problem(policy)
            chosen_options = search_options or SearchOptions()
            request = SearchRequest(engine, workspace, coded, models, policy, chosen_options, journal.progress)
            request = request.with_tuples(algorithm_of(policy.algorithm))
            yield OpenProblem(plan, lattice_problem(request), started)


def _models_of_problem(policy: Policy) -> tuple[PrivacyModel, ...]:
    """The models of rows; where persons are counted, at least one sees whose they are."""
    models, person = models_by_rows(policy), policy.person
    if person is None or any(model.attribute == person for model in models):
        return models
    return *models, KPersons(1, person)


def _without_kept_columns(plan: Plan) -> Plan:
    """The plan without the columns that neither the lattice nor a model looks at: there is no release to keep them."""
    looked_at = {model.attribute for model in models_of(plan.policy)}
    quasi = plan.quasi_identifiers
    seen = tuple(a for a in plan.attributes if a in quasi or a.name in looked_at)
    return replace(plan, attributes=seen, pseudonyms=())


@contextlib.contextmanager
def _workspace(plan: Plan, engine: Engine, journal: Journal) -> Iterator[Workspace]:
    """The workspace of an exploration; see the module."""
    if engine.traits.is_embedded:
        yield TemporaryWorkspace(engine)
        return
    with open_catalog(plan.policy, engine) as catalog:
        start = RunStart(
            source=plan.source_name,
            release=NO_RELEASE,
            policy=policy_text(plan.policy),
            algorithm=plan.policy.algorithm.name,
            engine_version=engine.version,
            source_rows=plan.rows,
            seed=seed_of(plan.policy.algorithm),
        )
        run = catalog.start_run(start)
        journal.observer.started(run)
        try:
            home = plan.policy.catalog.schema_ if plan.policy.catalog.url else None
            with Workspace(engine, catalog, run, home) as workspace, Control(catalog.channel(run), journal, engine):
                yield workspace
        except BaseException as error:
            steps, status = journal.steps, status_after(error)
            record_end(catalog, plan.policy, run, status, steps=steps, error=error, kept=error)
            raise
        record_end(catalog, plan.policy, run, Status.DRY, steps=journal.steps)
