"""What a run comes to: the object that `run --json` prints, the report reads and the catalog keeps."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlanon.measures.combinations import Combinations
from sqlanon.measures.distributions import Distributions
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.models import PrivacyModel, largest_k
from sqlanon.repeating import NO_REPETITION, Repetition
from sqlanon.runs.columns import Columns
from sqlanon.trust import Origin
from sqlanon.verification.checking import Check
from sqlanon.verification.verify import Verification
from sqlanon.workload.measures import Measures

PHASES = ("plan", "encode", "search", "recode", "verify", "publish")
TIMED = ("start", *PHASES, "finish")  # the parts of a command: until its plan, and from its release to its end
NULL_CHOICE = (
    "bounds, means, midpoints and ranges describe the known values; where a region holds NULL alone they are NULL"
)


@dataclass(frozen=True)
class QuasiIdentifier:
    """What became of a quasi-identifier.

    hierarchy, height: the kind of its hierarchy and the levels above the value; None without one.
    values, labels: how many the source has (NULL is none; None where they were not counted, of a wide range), and how
        many the release shows in their place.
    loss: the mean NCP over all rows, from 0 (as it was) to 1 (nothing is left); None where it is not known.
    """

    name: str
    type: str
    show: str
    hierarchy: str | None
    height: int | None
    values: int | None
    labels: int
    loss: float | None


@dataclass
class Outcome:
    """The result of a run, filled in phase by phase; `as_json` is its public form.

    began: when its plan was begun, by `time.perf_counter`.
    origin: what the source is, where it is a table.
    columns: of the source, names and types as the database writes them; fingerprint: of its rows (see `fingerprint`).
    subject: what the policy declares as its subject; repetition: of the source's identifiers.
    chart: what is known of the lattice that was searched, if one was.
    hierarchies: the hierarchies that were used, with their digests.
    digest: that of what was released.
    catalog: where the run is recorded: the URL of a database, without a password, and a schema.
    trial: whether nothing was to be published, and so nothing was verified.
    resumed: of which run the recoding was to be used again, whether it was, and if not why.
    predicted: how well the source and the release predict the algorithm's target, if it has one.
    """

    run: str
    engine: str
    began: float = 0.0
    source: str = ""
    source_rows: int = 0
    origin: Origin | None = None
    columns: Columns = ()
    fingerprint: str | None = None
    subject: str | None = None
    repetition: Repetition = NO_REPETITION
    release: str = ""
    algorithm: str = ""
    rounds: int = 0
    statements: int = 0
    suppressed: int = 0
    gcp: float | None = 0.0
    predicted: tuple[Measures, Measures] | None = None
    found: dict[str, Any] = field(default_factory=dict)
    chart: Mapping[str, Any] | None = None
    quasi_identifiers: tuple[QuasiIdentifier, ...] = ()
    hierarchies: tuple[Mapping[str, Any], ...] = ()
    digest: str | None = None
    verification: Verification | None = None
    checks: dict[str, Check] = field(default_factory=dict)
    before: ClassStatistics | None = None
    distributions: Distributions | None = None
    combinations: Combinations | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    models: tuple[PrivacyModel, ...] = ()
    catalog: Mapping[str, str] = field(default_factory=dict)
    published: bool = False
    trial: bool = False
    resumed: Mapping[str, Any] | None = None

    @property
    def k(self) -> int:
        """The k that class sizes are compared with: the largest asked for, or 1."""
        return largest_k(self.models)

    def account(self, command: float) -> None:
        """Count what a command took beside the phases, which began at `command` by `time.perf_counter`."""
        rest = time.perf_counter() - self.began - sum(self.seconds.values())
        self.seconds = {"start": self.began - command, **self.seconds, "finish": rest}

    def as_json(self) -> dict[str, Any]:
        """One object of plain values; names are those of the documentation."""
        assert self.verification is not None
        statistics = self.verification.statistics
        return {
            "run": self.run,
            "engine": self.engine,
            "source": {
                "table": self.source,
                "rows": self.source_rows,
                **({} if self.origin is None else vars(self.origin)),
                "columns": self._columns(),
                **self._digest(),
                **self._before(),
            },
            "release": {
                "table": self.release,
                "rows": statistics.rows,
                "suppressed": self.suppressed,
                "classes": statistics.classes,
                "min_class_size": statistics.min_class_size,
                "mean_class_size": statistics.mean_class_size,
                "max_class_size": statistics.max_class_size,
                "class_sizes": [vars(bucket) for bucket in statistics.buckets()],
                "nulls": NULL_CHOICE,
            },
            "subject": {"declared": self.subject, **self.repetition.as_json()},
            "models": [vars(result) for result in self.verification.models],
            **self._stars(),
            "metrics": {
                "c_avg": statistics.c_avg(self.k),
                "discernibility": statistics.discernibility(self.suppressed - statistics.suppressed),
                "gcp": self.gcp,
                **({} if self.predicted is None else self.predicted[1].as_json()),
            },
            "risk": _risk(statistics),
            "disclosure": [one.as_json() for one in self.verification.disclosure],
            "quasi_identifiers": [vars(one) for one in self.quasi_identifiers],
            **({} if self.distributions is None else {"distributions": self.distributions.as_json()}),
            **({} if self.combinations is None else {"combinations": self.combinations.as_json()}),
            "hierarchies": [dict(one) for one in self.hierarchies],
            "algorithm": {
                "name": self.algorithm,
                "rounds": self.rounds,
                "statements": self.statements,
                **self.found,
            },
            **({} if self.chart is None else {"lattice": dict(self.chart)}),
            "checks": {name: vars(check) for name, check in self.checks.items()},
            "seconds": {**self.seconds, "total": sum(self.seconds.values())},
            "catalog": dict(self.catalog),
            "verified": self.verified,
            "published": self.published,
            **({} if self.resumed is None else {"resumed": dict(self.resumed)}),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }

    @property
    def verified(self) -> bool:
        """Whether there was a staged release, and it passed every check."""
        assert self.verification is not None
        return (
            not self.trial
            and self.verification.satisfied
            and not any(check.violations for check in self.checks.values())
        )

    def _stars(self) -> dict[str, Any]:
        """Of suppressed rows that the release shows, if it does: how many, and whether the models judge them."""
        assert self.verification is not None
        rows, found = self.verification.statistics.suppressed, self.verification
        told = {"rows": rows, "unprotected": found.exempt, "violate": list(found.starred), "note": found.note}
        return {"starred": told} if rows else {}

    def _columns(self) -> list[dict[str, str]]:
        return [{"name": name, "type": kind} for name, kind in self.columns]

    def _digest(self) -> dict[str, str]:
        return {} if self.fingerprint is None else {"digest": self.fingerprint}

    def _before(self) -> dict[str, Any]:
        """The same figures of the source, over its raw quasi-identifiers."""
        if self.before is None:
            return {}
        return {
            "classes": self.before.classes,
            "min_class_size": self.before.min_class_size,
            "mean_class_size": self.before.mean_class_size,
            "max_class_size": self.before.max_class_size,
            "class_sizes": [vars(bucket) for bucket in self.before.buckets()],
            "classes_counted": self.before.counted,
            "unique_rows": dict(self.before.sizes).get(1, 0),
            "metrics": {
                "c_avg": self.before.c_avg(self.k),
                "discernibility": self.before.discernibility(),
                "gcp": 0.0,
                **({} if self.predicted is None else self.predicted[0].as_json()),
            },
            "risk": _risk(self.before),
        }


def _risk(statistics: ClassStatistics) -> dict[str, float]:
    return {
        "prosecutor_max": statistics.prosecutor_max,
        "prosecutor_mean": statistics.prosecutor_mean,
        "marketer": statistics.marketer,
    }


def about(source: Mapping[str, Any]) -> str:
    """What is said before figures of a source's classes, of `as_json`: whether they are estimates."""
    return "about " if source.get("classes_counted", 1) < 1 else ""
