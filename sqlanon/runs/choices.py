"""Choices of a run that applied rules: whose rules, as which job, and the treatment of violations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlanon.catalog import Catalog, Job, Run
from sqlanon.policy import Policy
from sqlanon.runs import OnViolation


@dataclass(frozen=True)
class Choices:
    """The choices of a run by `apply` or of a job, which its policy does not hold: that is the policy of `applied`.

    applied: the run whose rules they are. job, version: the job that it was a run of, if it was.
    on_violation: what was to become of classes that violate a model and of rows that no rule knows: error, or suppress.
    budget: the largest share of rows that could be suppressed; None for any, and with error.
    procedure: that of the database that carried it out, if one did.

    None, too, where the run did not record it: it came to no release, or is of an older version.
    """

    applied: str | None = None
    job: str | None = None
    version: int | None = None
    on_violation: str | None = None
    budget: float | None = None
    procedure: str | None = None

    def as_json(self) -> dict[str, Any]:
        """One object of plain values."""
        return dict(vars(self))


def choice_of(policy: Policy) -> OnViolation:
    """Return the policy's treatment of rows in violating classes: suppression, as far as it has a budget."""
    return "suppress" if policy.suppression else "error"


def choices_of(catalog: Catalog, run: Run) -> Choices | None:
    """Read the choices of a run; None for a run that searched.

    What its result does not tell is that of the job's version: the one it names, or the newest when it began.
    """
    facts = None if run.result is None else run.result.algorithm.applied
    if run.algorithm != "apply" and facts is None:
        return None
    version = None if facts is None else facts.version
    known = Choices() if run.job is None else _of_job(catalog.jobs(run.job), run, version)
    known = replace(known, job=run.job)
    if facts is None:
        return known
    known = replace(known, applied=facts.applied, version=facts.version or known.version)
    if facts.on_violation is not None:
        known = replace(known, on_violation=facts.on_violation, budget=facts.budget)
    return known if facts.procedure is None else replace(known, procedure=facts.procedure)


def _of_job(jobs: list[Job], run: Run, version: int | None) -> Choices:
    """The choices of a job's version; `jobs`: the newest first."""
    for job in jobs:
        if job.version == version or (version is None and job.created <= run.started):
            return Choices(job.run, job.name, job.version, job.on_violation, job.budget, job.routine)
    return Choices()
