"""Candidates for a release from a sweep: what the policy's algorithm finds with several k."""

from __future__ import annotations

from sqlanon.policy import Policy, Role
from sqlanon.results.run_result import RunResult
from sqlanon.runs.tradeoffs.sweeping import Sweep, loss_of
from sqlanon.runs.tradeoffs.tradeoff import SWEEP, CandidateSizes, Tradeoff, TradeoffCandidate, TradeoffColumn


def sweep_tradeoff(policy: Policy, swept: Sweep) -> Tradeoff:
    """Make the trade-off of the runs of a sweep; the k that can't be met are refusals."""
    met = [(one.k, one.result) for one in swept.runs if one.result is not None]
    names = [name for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER]
    first = met[0][1] if met else None
    rows = first.source.rows if first else 0
    return Tradeoff(
        source=swept.source,
        engine=first.engine if first else "",
        algorithm=policy.algorithm.name,
        kind=SWEEP,
        quality=None,
        rows=rows,
        budget=policy.suppressible(rows),
        columns=tuple(TradeoffColumn(name) for name in names),
        candidates=tuple(_candidate(k, result, names) for k, result in met),
        before=None if first is None else _before(first, names),
        refusals=tuple((one.k, one.refusal or "") for one in swept.runs if one.result is None),
        warnings=tuple(dict.fromkeys(warning for _, result in met for warning in result.warnings)),
        unit="rows" if policy.person is None else "persons",
        seconds=sum(result.seconds.total or 0.0 for _, result in met),
    )


def _candidate(k: int, result: RunResult, names: list[str]) -> TradeoffCandidate:
    release, loss = result.release, loss_of(result)
    by_column = {one.name: one.loss for one in result.quasi_identifiers or ()}
    return TradeoffCandidate(
        levels=None,
        k=k,
        satisfies=True,
        suppressed=release.suppressed,
        rows=release.rows,
        classes=release.classes,
        least=release.min_class_size,
        greatest=0.0 if result.risk is None else result.risk.prosecutor_max,
        mean=0.0 if result.risk is None else result.risk.prosecutor_mean,
        loss=None if loss is None else loss[1],
        losses=tuple(by_column.get(name) for name in names),
        score=None,
        sizes=tuple(CandidateSizes(one.lower, one.upper, one.classes) for one in release.class_sizes),
    )


def _before(result: RunResult, names: list[str]) -> TradeoffCandidate | None:
    """The source as the runs measured it."""
    source, figures = result.source, result.source.figures
    if figures is None or figures.risk is None or source.class_sizes is None:
        return None
    return TradeoffCandidate(
        levels=None,
        k=None,
        satisfies=False,
        suppressed=0,
        rows=source.rows,
        classes=sum(one.classes for one in source.class_sizes),
        least=figures.min_class_size,
        greatest=figures.risk.prosecutor_max,
        mean=figures.risk.prosecutor_mean,
        loss=0.0,
        losses=tuple(0.0 for _ in names),
        score=None,
        sizes=tuple(CandidateSizes(one.lower, one.upper, one.classes) for one in source.class_sizes),
    )
