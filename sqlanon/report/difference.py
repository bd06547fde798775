"""Differences between two releases: of policy, recoding and figures; and whether the two can be linked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from sqlanon.catalog import Catalog, RulesKind, Run, same_recoding
from sqlanon.catalog.sources import SourceIdentity, identify_recorded
from sqlanon.errors import PolicyError
from sqlanon.policy.loading import parse_stored
from sqlanon.policy.shown_policy import flattened_both
from sqlanon.results.codec import to_json


class RecodingDifference(StrEnum):
    """The relation between the recoding functions of two releases."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"  # the catalog does not hold the digests of both


@dataclass(frozen=True)
class Change:
    """A figure, or a part of the policy, in the first and in the second run; None where it has none."""

    name: str
    before: Any
    after: Any

    @property
    def changed(self) -> bool:
        return bool(self.before != self.after)


@dataclass(frozen=True)
class Difference:
    """Two runs compared.

    same_source: whether both were made of the same table of the same database.
    labels: the form of what each shows: `observed` ranges, `cuts`, `levels` of hierarchies, `centres` of clusters,
        or `synthetic` values.
    policy: the parts that differ. figures, columns: all, equal or not; of columns their labels, losses and levels.
    """

    a: str
    b: str
    same_source: bool
    recoding: RecodingDifference
    labels: Change
    policy: tuple[Change, ...]
    figures: tuple[Change, ...]
    columns: tuple[Change, ...]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """One object of plain values."""
        return asdict(self) | {"recoding": self.recoding.value}


def compare_runs(catalog: Catalog, a: str, b: str) -> Difference:
    """Compare two runs of a catalog, named as for `Catalog.run`.

    Raises PolicyError for an unknown run, or one that published nothing.
    """
    one, other = (_published(catalog, name) for name in (a, b))
    same_source = _source(catalog, one) == _source(catalog, other)
    recoding = _compare_recodings(catalog, one, other)
    labels = Change("labels", _labels(catalog, one), _labels(catalog, other))
    policies = flattened_both(*(json.loads(run.policy) for run in (one, other)))
    return Difference(
        a=one.id,
        b=other.id,
        same_source=same_source,
        recoding=recoding,
        labels=labels,
        policy=tuple(change for change in _changes(*policies) if change.changed),
        figures=tuple(_changes(_figures(one), _figures(other))),
        columns=tuple(_changes(_columns(one), _columns(other))),
        warnings=(*_warnings(one, other, same_source, recoding), *_label_warnings(labels)),
    )


def _source(catalog: Catalog, run: Run) -> SourceIdentity:
    recoding = next((release.recoding for release in catalog.releases(run.id)), None)
    return identify_recorded(run.source, run.database, recoding)


def _published(catalog: Catalog, name: str) -> Run:
    run = catalog.run(name)
    if run.method_result is not None:
        raise PolicyError(f"Run {run.id} released {run.method_result.shows}: it has no classes to compare.")
    if run.result is None or not run.result.published:
        raise PolicyError(f"Run {run.id} published nothing (it is {run.status.value}); there is no release to compare.")
    return run


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for name in dict.fromkeys([*before, *after]):
        yield Change(name, before.get(name), after.get(name))


def _figures(run: Run) -> dict[str, Any]:
    """Rows, classes, utility and risk of a release, in the order in which people want to know them."""
    assert run.result is not None
    release = run.result.release
    figures = {
        "source rows": run.result.source.rows,
        "rows": release.rows,
        "suppressed": release.suppressed,
        "classes": release.classes,
        "min_class_size": release.min_class_size,
        "mean_class_size": release.mean_class_size,
        "max_class_size": release.max_class_size,
    }
    worst = {
        " ".join([m.model, *(f"{key}={value}" for key, value in m.parameters.items()), "worst"]): m.worst
        for m in run.result.models
    }
    return {**figures, **to_json(run.result.metrics), **(to_json(run.result.risk) or {}), **worst}


def _columns(run: Run) -> dict[str, Any]:
    assert run.result is not None
    figures: dict[str, Any] = {}
    for one in run.result.quasi_identifiers or ():
        figures |= {f"{one.name}: labels": one.labels, f"{one.name}: loss": one.loss}
    return figures | {f"{name}: level": level for name, level in run.result.algorithm.levels.items()}


def _warnings(one: Run, other: Run, same_source: bool, recoding: RecodingDifference) -> Iterator[str]:
    if not same_source:
        yield "The two releases are of different sources: their figures do not say what a change of the policy did."
        return
    if one.id != other.id and recoding is not RecodingDifference.SAME:
        known = (
            "differ in their recoding" if recoding is RecodingDifference.DIFFERENT else "may differ in their recoding"
        )
        yield (
            f"Two releases of {one.source} {known}. Who holds both can intersect the classes of a person, and may be"
            " left with fewer rows than k. Release with the same rules instead (sqlanon apply), or make sure that"
            " nobody ever holds both; docs/report.md says more."
        )
    elif one.id != other.id:
        yield (
            f"Two releases of {one.source} share their recoding. Who holds both still sees which rows came, went or"
            " changed between them, and these may be fewer than k in a class."
        )


def _labels(catalog: Catalog, run: Run) -> str:
    """Name the form of a release's labels."""
    assert run.result is not None
    if run.result.algorithm.facts.shows is not None:
        return run.result.algorithm.facts.shows
    rules = catalog.rules(catalog.rules_run(run.id))
    if rules is not None and rules.kind is not RulesKind.TREE:
        return "levels"
    if run.result.algorithm.applied is not None:
        return "cuts"
    return "cuts" if parse_stored(run.policy).from_cut_to_cut else "observed"


def _label_warnings(labels: Change) -> Iterator[str]:
    if {labels.before, labels.after} & {"centres", "synthetic"}:
        return
    if labels.changed:
        extents = {"observed": "over the values of the class", "cuts": "from cut to cut", "levels": "by levels"}
        yield (
            f"The labels are formed otherwise: ranges reach {extents[labels.before]} in the first release, and"
            f" {extents[labels.after]} in the second. The same row may show another label; a policy with `ranges: cuts`"
            " has the first release and all later ones by its rules show the same."
        )


def _compare_recodings(catalog: Catalog, one: Run, other: Run) -> RecodingDifference:
    if _rules_of(one) == _rules_of(other):
        return RecodingDifference.SAME
    is_same = same_recoding(catalog.recoding_digest(one.id), catalog.recoding_digest(other.id))
    if is_same is None:
        return RecodingDifference.UNKNOWN
    return RecodingDifference.SAME if is_same else RecodingDifference.DIFFERENT


def _rules_of(run: Run) -> str:
    """The run that found the rules: itself, or the one whose rules it applied."""
    assert run.result is not None
    applied = run.result.algorithm.applied
    return run.id if applied is None else applied.applied
