"""Exploring a lattice without a release: `sqlanon lattice`.

Nothing is written but work tables: on DuckDB temporary ones; on PostgreSQL those of a run, which the catalog records
as `dry`, so that `gc` clears what a kill leaves.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sqlanon.catalog import Catalog, RunStart, Status
from sqlanon.encoding import encode
from sqlanon.engines import connect
from sqlanon.engines.base import Engine, EngineOptions
from sqlanon.engines.files import require_unchanged, source_version
from sqlanon.errors import Cancelled, SqlanonError
from sqlanon.exploration import Candidate, Exploration
from sqlanon.journal import Journal, Observer, Silent, status_after
from sqlanon.lattice.chart import Chart
from sqlanon.lattice.classify import classify
from sqlanon.lattice.lattice import Node, preference
from sqlanon.lattice.problem import Findings, Problem
from sqlanon.lattice.refusal import refusal
from sqlanon.lattice.search import pose, solve
from sqlanon.lattice.wishes import LARGEST, Wishes, on_lattice, require_size
from sqlanon.models import from_spec
from sqlanon.plan import Plan, resolve_source
from sqlanon.policy import FullDomain, Policy
from sqlanon.policy_writer import policy_text
from sqlanon.session import MEMORY_URL, open_catalog
from sqlanon.workspace import TemporaryWorkspace, Workspace

NO_RELEASE = "-"  # what the catalog says of an exploration's release
SCORED = 100  # minimal generalizations that are scored to be shown


def explore(
    policy: Policy,
    *,
    everything: bool = False,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
    time_limit: float | None = None,
    any_size: bool = False,
) -> Exploration:
    """Find out which generalizations of the policy's source satisfy its models, and publish nothing.

    everything: find all of them, and the best of all; otherwise what the policy's algorithm finds out on its way.
        A policy whose algorithm is not full-domain is explored by `optimal`.
    time_limit: seconds after which the search stops with what it knows.
    any_size: search exhaustively however large the lattice is.

    Raises PolicyError (the policy doesn't fit the table, or the lattice is too large), ProtectionError (no
    generalization satisfies the models; it says how far the nearest is), AccessError, EngineError, Cancelled.
    """
    try:
        wishes = Wishes(time_limit=time_limit, any_size=any_size)
        policy = on_lattice(policy)
        if not everything:
            wishes.applied_to(policy)
        with connect(policy.source.url or MEMORY_URL, options) as engine:
            return _Exploring(policy, engine, everything, wishes, Journal(observer or Silent())).carry_out()
    except KeyboardInterrupt:  # between two statements; during one the engine says so
        raise Cancelled("Interrupted.") from None


class _Exploring:
    """The state that the phases of one exploration share."""

    def __init__(self, policy: Policy, engine: Engine, everything: bool, wishes: Wishes, journal: Journal) -> None:
        self.policy = policy
        self.engine = engine
        self.everything = everything
        self.wishes = wishes
        self.journal = journal

    def carry_out(self) -> Exploration:
        """All phases."""
        self.engine.listener = self.journal.note
        with self.journal.during("plan"):
            version = source_version(self.policy.source.file)
            plan = resolve_source(self.policy, self.engine)
        with _workspace(plan, self.engine, self.journal) as workspace:
            with self.journal.during("encode"), self.engine.transaction():
                coded = encode(self.engine, _judged_only(plan), workspace)
            require_unchanged(self.policy.source.file, version)
            with self.journal.during("search"):
                started = time.perf_counter()
                models = tuple(from_spec(spec) for spec in self.policy.privacy)
                report = self.journal.observer.progress
                problem = pose(self.engine, workspace, coded, models, self.policy, report, self._posed())
                findings, chart = self._search(problem)
                return self._told(plan, problem, findings, chart, started)

    def _posed(self) -> Wishes:
        """Of `--all`, this module says itself how large the lattice may be."""
        return replace(self.wishes, any_size=True) if self.everything else self.wishes

    def _search(self, problem: Problem) -> tuple[Findings, Chart | None]:
        if self.everything:
            require_size(problem.lattice, "--all", self.wishes.any_size)
            findings, chart = classify(problem)
            return findings, chart
        findings = solve(problem, self.policy, self.wishes)
        if problem.lattice.size > LARGEST and not self.wishes.any_size:
            return findings, None
        return findings, _chart_of(problem, findings)

    def _told(
        self, plan: Plan, problem: Problem, findings: Findings, chart: Chart | None, started: float
    ) -> Exploration:
        if findings.chosen is None:
            raise refusal(problem, findings)
        algorithm = self.policy.algorithm
        assert isinstance(algorithm, FullDomain)
        minimal = findings.minimal if chart is None else chart.minimal
        return Exploration(
            source=plan.source_name,
            engine=self.engine.name,
            algorithm=algorithm.name,
            quality=algorithm.quality,
            everything=self.everything,
            rows=problem.sets.task.rows,
            budget=problem.sets.task.budget,
            lattice=problem.lattice,
            checked=problem.sets.checked,
            anonymous=sorted(findings.anonymous) if chart is None else chart.anonymous,
            minimal=minimal,
            frontier=_frontier(problem, findings, minimal),
            complete=findings.complete or (chart is not None and not chart.open),
            optimum=Candidate(findings.chosen, findings.suppressed, findings.score),
            proven=findings.proven,
            bound=findings.bound,
            statements=self.journal.count("search"),
            seconds=time.perf_counter() - started,
            warnings=plan.warnings,
            chart=chart,
        )


def _judged_only(plan: Plan) -> Plan:
    """The plan without the columns that neither the lattice nor a model looks at: there is no release to keep them."""
    looked_at = {model.attribute for model in (from_spec(spec) for spec in plan.policy.privacy)}
    quasi = plan.quasi_identifiers
    return replace(plan, attributes=tuple(a for a in plan.attributes if a in quasi or a.name in looked_at))


def _chart_of(problem: Problem, findings: Findings) -> Chart:
    """What an algorithm's findings say of all nodes."""
    chart = Chart(problem.lattice, problem.sets)
    for node, verdict in findings.verdicts.items():
        chart.learn(node, verdict)
    for node in findings.anonymous - findings.verdicts.keys():
        chart.vouch(node)
    return chart


def _frontier(problem: Problem, findings: Findings, minimal: Sequence[Node]) -> list[Candidate]:
    """The minimal generalizations, the best first, then those without a score.

    Nothing is checked for the sake of showing it, and of many only those are scored that may be the best.
    """
    known = [(node, findings.verdicts[node].suppressed) for node in minimal if node in findings.verdicts]
    levels = np.array([node for node, _ in known], dtype=np.int64).reshape(len(known), len(problem.lattice.names))
    bounds = problem.quality.bounds(levels, np.array([float(suppressed) for _, suppressed in known]))
    first = [known[place] for place in np.argsort(bounds, kind="stable")]
    scored = [Candidate(node, rows, problem.quality.score(node, rows)) for node, rows in first[:SCORED]]
    others = [Candidate(node, rows) for node, rows in first[SCORED:]]
    unchecked = [Candidate(node) for node in minimal if node not in findings.verdicts]
    return [*sorted(scored, key=lambda one: (one.score, *preference(one.levels))), *others, *unchecked]


@contextlib.contextmanager
def _workspace(plan: Plan, engine: Engine, journal: Journal) -> Iterator[Workspace]:
    """The workspace of an exploration; see the module."""
    if engine.dialect == "duckdb":
        yield TemporaryWorkspace(engine)
        return
    with open_catalog(plan.policy, engine) as catalog:
        run = catalog.start_run(_start(plan, engine))
        try:
            home = plan.policy.catalog.schema_ if plan.policy.catalog.url else None
            with Workspace(engine, catalog, run, home) as workspace:
                yield workspace
        except BaseException as error:
            _end(catalog, run, journal, error)
            raise
        _end(catalog, run, journal)


def _start(plan: Plan, engine: Engine) -> RunStart:
    return RunStart(
        source=plan.source_name,
        release=NO_RELEASE,
        policy=policy_text(plan.policy),
        algorithm=plan.policy.algorithm.name,
        engine_version=engine.version,
        source_rows=plan.rows,
    )


def _end(catalog: Catalog, run: str, journal: Journal, error: BaseException | None = None) -> None:
    """Record the end; what fails here must not hide what failed before."""
    try:
        catalog.add_steps(run, journal.steps)
        catalog.finish_run(run, Status.DRY if error is None else status_after(error), error=error)
    except SqlanonError as failure:
        if error is None:
            raise
        error.add_note(f"The end could not be recorded ({failure}).")
