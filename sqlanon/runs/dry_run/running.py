"""A dry run: the flow of every run, with engines, a catalog and files that write down what they are told.

Planning reads the live table. From then on nothing but questions about names, types and privileges is sent, and
answers about data are made up: see `answers`. So the statements are those of a run; widths of codes, cuts, the number
of rounds and of checks depend on the data. Of a statement that a search over a lattice repeats, the first few stand for
all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlanon.algorithms import SearchRequest, algorithm_of
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.catalog import Step
from sqlanon.catalog.tables import TABLE_NAMES
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.embedded import database_file, open_in_place_of
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, PolicyError
from sqlanon.plan.persons import refuse_persons
from sqlanon.plan.plan import Plan, with_word_of_release
from sqlanon.plan.pseudonyms import refuse_pseudonyms
from sqlanon.policy import Policy
from sqlanon.runs.dry_run.answers import FakeAnswers
from sqlanon.runs.dry_run.recording_catalog import RecordingCatalog
from sqlanon.runs.dry_run.recording_engine import RecordingEngine
from sqlanon.runs.dry_run.script import Script
from sqlanon.runs.execution import ClassRun, Encoded, RunExecution
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.runs.search_source import Search
from sqlanon.runs.sink import AnySource, Publish
from sqlanon.runs.sources import source_of
from sqlanon.work.session import (
    Session,
    catalog_at,
    catalog_place,
    database_url,
    has_own_catalog,
    open_engines,
    require_first,
)

_REPEATS = 2  # statements of one template that a shortened search shows


_RELEASE = "-- In the release's database.\n"


_CATALOG = "-- In the catalog's database.\n"


@dataclass(frozen=True)
class DryRun:
    """The plan, and the steps by phase in the order of a run."""

    plan: Plan
    steps: list[Step]


class PrintRelease(Publish):
    """A release that is published in words alone: one that exists is taken to be replaced."""

    def __init__(self, answers: FakeAnswers, replace: bool) -> None:
        super().__init__(replace=True)
        self._answers = answers
        self._may_replace = replace

    def plan(self, run: RunExecution[Any], source: AnySource) -> Plan:
        """Resolve the policy against the live table; without permission to replace, a warning says so."""
        with self._answers.script.planning():
            plan: Plan = super().plan(run, source)
            if not self._may_replace:
                plan = with_word_of_release(plan, run.engine, run.session.target)
        self._answers.plan = plan
        return plan


def run_dry(
    policy: Policy,
    options: EngineOptions | None = None,
    replace: bool = False,
    search_options: SearchOptions | None = None,
) -> DryRun:
    """Carry out a run that changes nothing, and return what it would have done; raises what the run would raise.

    A release that exists is taken to be replaced; without `replace` a warning of the plan says what a run needs.
    """
    refuse_persons(policy, "a dry run")
    refuse_pseudonyms(policy, "a dry run reads no identifiers (`show --steps` has the statements of a run), and")
    if policy.population_elsewhere is not None:
        raise PolicyError(f"privacy: a dry run does not bring the population {policy.population}; run `sqlanon check`.")
    search_options = search_options or SearchOptions()
    policy = search_options.applied_to(policy)
    answers = FakeAnswers(Script())
    with interruptible(), open_dry_session(policy, options or EngineOptions(), answers) as session:
        sink = PrintRelease(answers, replace)
        makes_classes = policy.algorithm.recodes.makes_classes
        source = ShortSearch(policy, search_options, answers) if makes_classes else source_of(policy, search_options)
        carry_out(session, policy, source, sink, answers.script)
    return DryRun(answers.plan, answers.script.steps)


class ShortSearch(Search):
    """The policy's search, shortened as its algorithm says: heights and sizes are made up."""

    def __init__(self, policy: Policy, search_options: SearchOptions, answers: FakeAnswers) -> None:
        super().__init__(policy.algorithm, search_options)
        self._answers = answers

    def _search(self, run: ClassRun, request: SearchRequest, encoded: Encoded) -> Any:
        shortened = algorithm_of(request.policy.algorithm).shortened(request)
        if shortened is not None:
            request = shortened
            self._answers.script.repeats = _REPEATS
        self._answers.algorithm = request.policy.algorithm
        decision = super()._search(run, request, encoded)
        self._answers.script.repeats = None
        self._answers.omitted = decision.omitted
        return decision


@contextlib.contextmanager
def open_dry_session(policy: Policy, options: EngineOptions, answers: FakeAnswers) -> Iterator[Session]:
    """All that a run needs, where nothing is written; a DuckDB file that a run would make is not made."""
    with contextlib.ExitStack() as stack:
        opened: list[RecordingEngine] = []

        def opening(url: str, options: EngineOptions, *, create: bool) -> Engine:
            opened.append(_open_recording(stack, url, options, create, answers, _RELEASE if opened else ""))
            return opened[-1]

        engine, target = stack.enter_context(open_engines(policy, options, opening))
        place = catalog_place(policy)
        is_own = place.url == database_url(policy)
        store = opened[0] if is_own else _open_recording(stack, place.url, options, True, answers, _CATALOG)
        there = stack.enter_context(catalog_at(place, policy, opened[0].inner, store.inner))
        if place.is_named and there.current() is None:
            require_first(there, policy)
        with RecordingCatalog(engine, store, answers.script, there) as catalog:
            answers.of_catalog = tuple(str(there.location.relation(name)) for name in TABLE_NAMES)
            catalog.upgrade()
            yield Session(engine, target, catalog, own_catalog=has_own_catalog(policy))


def _open_recording(
    stack: contextlib.ExitStack, url: str, options: EngineOptions, create: bool, answers: FakeAnswers, where: str
) -> RecordingEngine:
    """A session that writes nothing; an empty database in memory stands for a DuckDB file that a run would make."""
    try:
        return RecordingEngine(stack.enter_context(connect(url, options)), answers, where)
    except AccessError:
        file = database_file(url)
        if not create or file is None or file.exists():
            raise
    inner = stack.enter_context(open_in_place_of(file, options))
    return RecordingEngine(inner, answers, where, file.absolute())
