"""Comparing policies of one table: what each of them would release, with other models, algorithms or hierarchies."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy, Role, Source
from sqlanon.results.measures import SizeBucket
from sqlanon.results.run_result import RunResult
from sqlanon.runs.tradeoffs.sweeping import Sweep, loss_of, measure_as_it_is, sweep
from sqlanon.runs.tradeoffs.tradeoff import SWEEP, CandidateSizes, Tradeoff, TradeoffCandidate, TradeoffColumn
from sqlanon.work.journal import Observer


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
        sizes=_sizes(release.class_sizes),
    )


def _sizes(buckets: Sequence[SizeBucket]) -> tuple[CandidateSizes, ...]:
    return tuple(CandidateSizes(one.lower, one.upper, one.classes) for one in buckets)


def _before(result: RunResult, names: list[str]) -> TradeoffCandidate | None:
    """The source as the runs measured it."""
    source, figures = result.source, result.source.figures
    if figures is None or figures.risk is None or source.class_sizes is None:
        return None
    return TradeoffCandidate(
        satisfies=False,
        suppressed=0,
        rows=source.rows,
        classes=sum(one.classes for one in source.class_sizes),
        least=figures.min_class_size,
        greatest=figures.risk.prosecutor_max,
        mean=figures.risk.prosecutor_mean,
        loss=0.0,
        losses=tuple(0.0 for _ in names),
        sizes=_sizes(source.class_sizes),
    )


def compare_policies(
    policies: Mapping[str, Policy],
    *,
    ks: Sequence[int] = (),
    options: EngineOptions | None = None,
    observer: Observer | None = None,
) -> Tradeoff:
    """Measure what each of several policies of one table would release, and publish nothing.

    policies: by the name that candidates have, such as that of their file.
    ks: each policy is tried with every k in place of its own; without these, with its own.

    Raises PolicyError (there are none; they are of different tables, quasi-identifiers or persons, or measure loss by
    different figures; or one doesn't fit the table), AccessError, EngineError, Cancelled.
    """
    if not policies:
        raise PolicyError("There is no policy to compare.")
    _require_one_table(policies)
    sweeps = {}
    for name, policy in policies.items():
        with mistakes_of(name):
            sweeps[name] = (
                sweep(policy, ks, options=options, observer=observer)
                if ks
                else measure_as_it_is(policy, options=options, observer=observer)
            )
    _require_one_loss(sweeps)
    return _joined({name: _named(name, sweep_tradeoff(policies[name], sweeps[name]), bool(ks)) for name in policies})


@contextlib.contextmanager
def mistakes_of(name: str) -> Iterator[None]:
    """Say of what is wrong with a policy which of several it is."""
    try:
        yield
    except PolicyError as error:
        error.add_note(f"This is about {name}.")
        raise


def _require_one_table(policies: Mapping[str, Policy]) -> None:
    (first, policy), *others = policies.items()
    for name, other in others:
        if _table(other.source) != _table(policy.source):
            raise PolicyError(f"{name} is of another table than {first}: only policies of one table can be compared.")
        if _quasi_identifiers(other) != _quasi_identifiers(policy) or other.person != policy.person:
            raise PolicyError(
                f"{name} has other quasi-identifiers, or another subject, than {first}: their risks can't be compared."
            )


def _table(source: Source) -> Source:
    """A source with its file as the system names it: policies of several directories name it otherwise."""
    if source.file is None or "://" in source.file:
        return source
    return source.model_copy(update={"file": os.path.realpath(source.file)})


def _quasi_identifiers(policy: Policy) -> set[str]:
    return {name for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER}


def _require_one_loss(sweeps: Mapping[str, Sweep]) -> None:
    results = [one.result for swept in sweeps.values() for one in swept.runs if one.result is not None]
    measures = sorted({loss[0] for result in results if (loss := loss_of(result)) is not None})
    if len(measures) > 1:
        raise PolicyError(f"The losses of these policies are measured by {' and '.join(measures)}: compare them apart.")


def _named(name: str, tradeoff: Tradeoff, keeps_k: bool) -> Tradeoff:
    """The trade-off of one policy, whose candidates and refusals say so."""
    return replace(
        tradeoff,
        candidates=tuple(replace(one, policy=name, k=one.k if keeps_k else None) for one in tradeoff.candidates),
        refusals=tuple((k, f"{name}: {reason}") for k, reason in tradeoff.refusals),
        warnings=tuple(f"{name}: {warning}" for warning in tradeoff.warnings),
    )


def _joined(tradeoffs: Mapping[str, Tradeoff]) -> Tradeoff:
    """All candidates together; the columns, and the source as it is, are those of the first policy that had any."""
    parts = list(tradeoffs.values())
    first = next((one for one in parts if one.candidates), parts[0])
    places = [column.name for column in first.columns]
    candidates = []
    for part in parts:
        order = [[column.name for column in part.columns].index(name) for name in places]
        candidates += [replace(one, losses=tuple(one.losses[i] for i in order)) for one in part.candidates]
    return replace(
        first,
        algorithm=", ".join(dict.fromkeys(one.algorithm for one in parts)),
        budget=max(one.budget for one in parts),
        candidates=tuple(candidates),
        refusals=tuple(refusal for one in parts for refusal in one.refusals),
        warnings=tuple(warning for one in parts for warning in one.warnings),
        seconds=sum(one.seconds for one in parts),
    )
