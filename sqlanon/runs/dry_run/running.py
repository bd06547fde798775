"""A dry run: the flow of every run, with engines, a catalog and files that write down what they are told.

Planning reads the live table. From then on nothing but questions about names, types and privileges is sent, and
answers about data are made up: see `answers`. So the statements are those of a run; widths of codes, cuts, the number
of rounds and of checks depend on the data. Of a statement that a search over a lattice repeats, the first few stand for
all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.catalog import Step
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.plan.persons import refuse_persons
from sqlanon.plan.plan import Plan, with_word_of_release
from sqlanon.plan.pseudonyms import refuse_pseudonyms
from sqlanon.policy import Policy
from sqlanon.runs.dry_run.answers import FakeAnswers
from sqlanon.runs.dry_run.script import Script
from sqlanon.runs.dry_run.session import open_dry_session
from sqlanon.runs.dry_run.source import ShortSearch
from sqlanon.runs.execution import RunExecution
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.runs.sink import AnySource, Publish


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
        carry_out(session, policy, ShortSearch(policy, search_options, answers), sink, answers.script)
    return DryRun(answers.plan, answers.script.steps)
