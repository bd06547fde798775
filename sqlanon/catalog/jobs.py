"""Jobs as the catalog keeps them: their versions, and when they run."""

from __future__ import annotations

import dataclasses

from sqlanon.catalog.access import Access
from sqlanon.catalog.records import Job
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError


class Jobs(Access):
    """The jobs of a catalog."""

    def record_job(self, job: Job) -> None:
        """Record a version of a job."""
        self._insert("record the job", self._tables.jobs, vars(job))

    def record_job_within(self, session: Engine, job: Job) -> None:
        """Record a version of a job in the transaction of a session with the catalog's own database."""
        values = dataclasses.asdict(job)
        session.load(self.location.relation("jobs"), list(values), [list(values.values())])

    def jobs(self, name: str | None = None) -> list[Job]:
        """All versions of all jobs, or of one, the newest version of each first."""
        bound = {} if name is None else {"name": name}
        return [Job(**row) for row in self._rows("select_jobs", bound, named=name is not None)]

    def job(self, name: str) -> Job:
        """The newest version of a job.

        Raises:
            PolicyError: there is no such job.
        """
        jobs = self.jobs(name)
        if not jobs:
            raise PolicyError(f"The catalog has no job '{name}'; `sqlanon jobs` lists them.")
        return jobs[0]

    def set_schedule(self, name: str, schedule: str | None, scheduler: str | None) -> None:
        """Note when a job runs from now on, and what starts it; None for never."""
        values = {"name": name, "schedule": schedule, "scheduler": scheduler}
        self._change("note the schedule", "set_schedule", values)
