"""Sweeping over several k: what each would cost, before one of them is released. Nothing is published or verified."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.catalog import NO_RELEASE, Run, Status
from sqlanon.encoding.pseudonymized import without_pseudonyms
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import Cancelled, PolicyError, ProtectionError
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.plan.checks import ONE_PROTECTS_NOBODY
from sqlanon.plan.plan import Plan, resolve_source
from sqlanon.policy import Policy
from sqlanon.policy.privacy import k_asked, models_with_k
from sqlanon.results.run_result import RunResult
from sqlanon.runs.execution import ClassRun
from sqlanon.runs.flow import carry_out
from sqlanon.runs.search_source import Search
from sqlanon.runs.sink import AnySource, Sink
from sqlanon.verification.verdict import Verification
from sqlanon.work.journal import Observer
from sqlanon.work.notebook import follower
from sqlanon.work.session import open_session

GCP, VARIANCE = "GCP", "variance"  # measures of loss: of labels, and of centres


@dataclass(frozen=True)
class SweepRun:
    """The result of one k; `result` is None where k can't be met, and `refusal` says why."""

    k: int
    result: RunResult | None
    refusal: str | None = None


@dataclass(frozen=True)
class TradeoffPoint:
    """A release, made or tried, between privacy and utility.

    k: what was asked for; least: the rows of the smallest class; published: whether it was released.
    loss: from 0 to 1, by `measure`, which is the same for all releases of a policy.
    """

    k: int
    least: int
    classes: int
    suppressed: int
    loss: float
    risk: float
    published: bool = False
    measure: str = GCP


@dataclass(frozen=True)
class Sweep:
    """Several k of one policy, ascending."""

    source: str
    runs: tuple[SweepRun, ...]

    @property
    def points(self) -> tuple[TradeoffPoint, ...]:
        """The points of the runs whose k could be met."""
        met = (None if one.result is None else point_of(one.k, one.result) for one in self.runs)
        return tuple(point for point in met if point is not None)

    @property
    def beaten(self) -> frozenset[int]:
        """The k that another beats; none of those whose loss is not known."""
        return frozenset(point.k for point in set(self.points).difference(frontier(self.points)))

    def as_json(self) -> dict[str, Any]:
        """One object of plain values; each run whose k could be met holds what `run --json` prints of a run.

        frontier: null where the loss of a release is not known, which other releases are not compared with.
        """
        return {
            "source": self.source,
            "trials": [
                {
                    "k": one.k,
                    "met": one.result is not None,
                    "refusal": one.refusal,
                    "frontier": self._is_best(one),
                    "outcome": None if one.result is None else one.result.as_json(),
                }
                for one in self.runs
            ],
        }

    def _is_best(self, run: SweepRun) -> bool | None:
        """Tell whether no other k beats that of a run; None where its loss is not known."""
        if run.result is None:
            return False
        return run.k not in self.beaten if run.k in {point.k for point in self.points} else None


def sweep(
    policy: Policy, ks: Sequence[int], *, options: EngineOptions | None = None, observer: Observer | None = None
) -> Sweep:
    """Search with each k in place of the policy's, and measure what the release would be; its other models stay.

    Each run is recorded in the catalog as a dry run, for reports to draw; one whose k can't be met, as refused.
    Raises PolicyError (the policy doesn't fit the table, or a k is below 1), AccessError, EngineError, Cancelled.
    """
    if not ks or min(ks) < 1:
        raise PolicyError("A sweep needs whole numbers from 1 on, such as --k 2,5,10.")
    return _measured(policy, {k: with_k(policy, k) for k in sorted(set(ks))}, options, observer)


def measure_as_it_is(
    policy: Policy, *, options: EngineOptions | None = None, observer: Observer | None = None
) -> Sweep:
    """The same of the policy with its own models: its one run is named by the largest k that any of them asks for."""
    return _measured(policy, {k_asked(policy.privacy): policy}, options, observer)


def _measured(
    policy: Policy, tried: Mapping[int, Policy], options: EngineOptions | None, observer: Observer | None
) -> Sweep:
    """The runs of what is tried in place of a policy."""
    if policy.algorithm.releases_clusters:
        raise PolicyError("A sweep compares releases of rows, and r-gather releases clusters: run it with each k.")
    if policy.algorithm.has_wildcards:
        raise PolicyError(
            f"A sweep compares classes, and a release of {policy.algorithm.name} has none: run it with each k."
        )
    given = options or EngineOptions(), follower(observer)
    try:
        runs = tuple(_measure_run(one, k, *given) for k, one in tried.items())
    except KeyboardInterrupt:  # between two statements; during one the engine says so
        raise Cancelled("Interrupted.") from None
    return Sweep(policy.source.file or policy.source.table or "", runs)


def with_k(policy: Policy, k: int) -> Policy:
    """The policy with this k in its k-anonymity, which it gets if it has none."""
    return policy.model_copy(update={"privacy": models_with_k(policy.privacy, k)})


def point_of(k: int, result: RunResult) -> TradeoffPoint | None:
    """The place of a release between privacy and utility; None where its loss is not known."""
    release, loss = result.release, loss_of(result)
    if loss is None or result.risk is None:
        return None
    return TradeoffPoint(
        k=k,
        least=release.min_class_size,
        classes=release.classes,
        suppressed=release.suppressed,
        loss=loss[1],
        risk=result.risk.prosecutor_max,
        published=result.published,
        measure=loss[0],
    )


def loss_of(result: RunResult) -> tuple[str, float] | None:
    """The measure of a release's loss, and the loss from 0 to 1; None where it is not known."""
    gcp, variance = result.metrics.gcp, result.algorithm.facts.loss_of_variance
    return (GCP, gcp) if gcp is not None else (VARIANCE, variance) if variance is not None else None


def frontier(points: Sequence[TradeoffPoint]) -> tuple[TradeoffPoint, ...]:
    """The points that no other beats: none has classes as large, or larger, and loses less."""
    return tuple(
        one
        for one in points
        if not any(
            other.least >= one.least and other.loss <= one.loss and (other.least, other.loss) != (one.least, one.loss)
            for other in points
        )
    )


def largest_k(policy: dict[str, Any]) -> int:
    """The k of a recorded policy, or 1."""
    return max((model["k"] for model in policy["privacy"] if model["model"] == "k-anonymity"), default=1)


def recorded_points(run: Run, dry_runs: Sequence[Run]) -> tuple[TradeoffPoint, ...]:
    """A recorded run, and the dry runs (the newest first) of its policy with other k: the newest of each, by k."""
    policy = json.loads(run.policy)
    points: dict[tuple[int, bool], TradeoffPoint | None] = {}
    for one in (run, *dry_runs):
        tried = json.loads(one.policy)
        if one.result is None or _family(tried) != _family(policy):
            continue
        k = largest_k(tried)
        points.setdefault((k, one.id == run.id), point_of(k, one.result))
    return tuple(points[key] for key in sorted(points) if points[key] is not None)  # type: ignore[misc]


def _family(policy: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a policy that the runs of a sweep share."""
    others = [model for model in policy["privacy"] if model["model"] != "k-anonymity"]
    kept = {key: value for key, value in policy.items() if key not in ("release", "catalog")}
    return {**kept, "privacy": others}


def _measure_run(policy: Policy, k: int, options: EngineOptions, observer: Observer) -> SweepRun:
    with open_session(_in_database_of_source(policy), options) as session:
        try:
            return SweepRun(
                k, carry_out(session, policy, Search(policy.algorithm, SearchOptions()), Measure(), observer)
            )
        except ProtectionError as error:
            return SweepRun(k, None, str(error))


def _in_database_of_source(policy: Policy) -> Policy:
    """The policy without a release in another database, which would be made for nothing."""
    if policy.source.url is None or policy.release.url in (None, policy.source.url):
        return policy
    return policy.model_copy(update={"release": policy.release.model_copy(update={"url": None})})


class Measure(Sink[ClassRun]):
    """A sink for releases that are measured and not made: their classes are counted by the regions."""

    ends_as = Status.DRY

    def plan(self, run: ClassRun, source: AnySource) -> Plan:  # noqa: ARG002
        k = k_asked(run.policy.privacy)
        plan = resolve_source(with_k(run.policy, 1) if k > 1 else run.policy, run.engine)
        if plan.rows < k:  # of a policy that is a mistake, of a sweep an answer
            raise ProtectionError(f"{plan.source_name} holds {plan.rows:,} rows.")
        run.source_rows = plan.rows
        warnings = plan.warnings if k == 1 else (one for one in plan.warnings if one != ONE_PROTECTS_NOBODY)
        return without_pseudonyms(replace(plan, policy=run.policy, warnings=tuple(warnings)))

    def release_name(self, plan: Plan) -> str:  # noqa: ARG002
        return NO_RELEASE

    def lock(self, run: ClassRun) -> contextlib.AbstractContextManager[None]:  # noqa: ARG002
        """Lock nothing: no others could be about to publish the same."""
        return contextlib.nullcontext()

    def take(self, run: ClassRun, source: AnySource) -> None:
        """Measure the classes by their regions; of persons, by what their classes show."""
        with source.snapshot(run):
            source.make(run, publishes=False)
        outcome, release = run.outcome, run.release
        outcome.is_dry = True
        with run.journal.during("recode"):
            if run.plan.hidden_person is not None:  # as all persons are, where no pseudonyms are made
                outcome.verification = release.measure_persons(run.engine, run.workspace)
                return
            sizes = release.class_sizes(run.engine)
        outcome.verification = Verification(
            ClassStatistics(outcome.source_rows - release.omitted, release.starred_rows, sizes), ()
        )
