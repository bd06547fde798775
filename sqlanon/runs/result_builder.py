"""The result of a run while it is put together: parts come phase by phase, and the whole when all are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlanon.measures.metrics import ClassStatistics
from sqlanon.measures.workload.measures import Measures
from sqlanon.models import PrivacyModel, largest_k
from sqlanon.plan.subject import NO_REPETITION, Repetition
from sqlanon.results.codec import from_json
from sqlanon.results.history import HistoryFigures
from sqlanon.results.masking import Masking
from sqlanon.results.measures import Check, Combinations, Distributions, StarredRows, UtilityMeasures
from sqlanon.results.run_result import (
    NULL_CHOICE,
    CatalogPlace,
    CostsUse,
    HierarchyUse,
    LatticeResult,
    QuasiIdentifier,
    ReleaseResult,
    Resumed,
    RunResult,
    Seconds,
    SourceFigures,
    SourceResult,
    Subject,
)
from sqlanon.results.search_facts import AlgorithmResult, Facts, TreeFacts
from sqlanon.results.source_facts import Origin, SourceColumn
from sqlanon.runs.column_changes import Columns
from sqlanon.verification.persons import note_of_persons
from sqlanon.verification.verdict import Verification


@dataclass
class ResultBuilder:
    """Parts of the result of a run, as far as it has come; `build` makes the result of them.

    began: when its plan was begun, by `time.perf_counter`.
    origin: what the source is, where it is a table.
    columns: of the source, names and types as the database writes them; fingerprint: of its rows (see `fingerprint`).
    subject: what the policy declares as its subject; repetition: of the source's identifiers.
    most_rows: where persons are counted, no one of the source has more rows.
    facts: of the recoding; lattice: what is known of the lattice that was searched, if one was.
    hierarchies: the hierarchies that were used, with their digests; costs: the files of costs.
    digest: that of what was released.
    is_dry: whether nothing was to be published, and so nothing was verified.
    history: the figures of all releases about the same people.
    masking: what was measured of a release without labels beside its source.
    predicted: how well the source and the release predict the algorithm's target, if it has one.
    """

    run: str
    engine: str
    catalog: CatalogPlace
    began: float = 0.0
    source: str = ""
    source_rows: int = 0
    origin: Origin | None = None
    columns: Columns = ()
    fingerprint: str | None = None
    subject: str | None = None
    repetition: Repetition = NO_REPETITION
    most_rows: int = 1
    release: str = ""
    algorithm: str = ""
    rounds: int = 0
    statements: int = 0
    suppressed: int = 0
    gcp: float | None = 0.0
    predicted: tuple[Measures, Measures] | None = None
    facts: Facts = field(default_factory=TreeFacts)
    lattice: Mapping[str, Any] | None = None
    quasi_identifiers: tuple[QuasiIdentifier, ...] = ()
    hierarchies: tuple[HierarchyUse, ...] = ()
    costs: tuple[CostsUse, ...] = ()
    digest: str | None = None
    verification: Verification | None = None
    checks: dict[str, Check] = field(default_factory=dict)
    before: ClassStatistics | None = None
    distributions: Distributions | None = None
    masking: Masking | None = None
    combinations: Combinations | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    models: tuple[PrivacyModel, ...] = ()
    published: bool = False
    is_dry: bool = False
    resumed: Resumed | None = None
    history: HistoryFigures | None = None

    @property
    def k(self) -> int:
        """The k that class sizes are compared with: the largest asked for, or 1."""
        return largest_k(self.models)

    def build(self) -> RunResult:
        """Make the result of a run that came to a verified release, or tried one."""
        assert self.verification is not None
        failed = any(check.violations for check in self.checks.values())
        statistics = self.verification.statistics
        return RunResult(
            run=self.run,
            engine=self.engine,
            source=self._source(),
            release=self._release(self.verification),
            subject=self._subject(self.verification),
            models=self.verification.models,
            starred=self._starred(self.verification),
            metrics=self._utility(self.verification),
            risk=None if self.facts.judged is not None or statistics.fits else statistics.risk,
            disclosure=self.verification.disclosure,
            masking=self.masking,
            quasi_identifiers=self.quasi_identifiers,
            distributions=self.distributions,
            combinations=self.combinations,
            hierarchies=self.hierarchies,
            costs=self.costs or None,
            algorithm=AlgorithmResult(self.algorithm, self.rounds, self.statements, self.facts),
            lattice=None if self.lattice is None else from_json(LatticeResult, self.lattice, "lattice"),
            checks=dict(self.checks),
            seconds=Seconds.of(self.seconds),
            catalog=self.catalog,
            verified=not self.is_dry and self.verification.satisfied and not failed,
            published=self.published,
            resumed=self.resumed,
            history=self.history,
            warnings=self.warnings,
            notes=self.notes,
            began=self.began,
        )

    def _source(self) -> SourceResult:
        return SourceResult(
            table=self.source,
            rows=self.source_rows,
            origin=self.origin,
            columns=tuple(SourceColumn(name, kind) for name, kind in self.columns),
            digest=self.fingerprint,
            figures=None if self.before is None else self._figures(self.before),
        )

    def _figures(self, before: ClassStatistics) -> SourceFigures:
        """The figures of the source over its raw quasi-identifiers."""
        predicted = () if self.predicted is None else _predicted(self.predicted[0])
        return SourceFigures(
            classes=before.classes,
            min_class_size=before.min_class_size,
            mean_class_size=before.mean_class_size,
            max_class_size=before.max_class_size,
            class_sizes=before.buckets(),
            classes_counted=before.counted,
            unique_rows=dict(before.sizes).get(1, 0),
            metrics=UtilityMeasures(before.c_avg(self.k), before.discernibility(), 0.0, *predicted),
            risk=before.risk,
        )

    def _release(self, verification: Verification) -> ReleaseResult:
        statistics, shared = verification.statistics, verification.shared
        counted = statistics.rows if verification.persons is None else verification.persons.rows
        return ReleaseResult(
            table=self.release,
            rows=counted if shared is None else shared.rows,
            suppressed=self.suppressed,
            classes=statistics.classes,
            min_class_size=statistics.min_class_size,
            mean_class_size=statistics.mean_class_size,
            max_class_size=statistics.max_class_size,
            class_sizes=statistics.buckets(),
            judged=self.facts.judged,
            nulls=NULL_CHOICE,
            fits=statistics.fits or None,
        )

    def _subject(self, verification: Verification) -> Subject:
        repetition = self.repetition
        counted = verification.persons
        if counted is None:
            return Subject(self.subject, repetition.columns, repetition.unread, repetition.sentence, "rows")
        note = note_of_persons(str(self.subject), counted)
        return Subject(
            self.subject,
            repetition.columns,
            repetition.unread,
            note,
            "persons",
            counted.persons,
            in_several_classes=counted.several,
            singled_out=counted.singled,
        )

    def _starred(self, verification: Verification) -> StarredRows | None:
        """Suppressed rows that the release shows, if it does."""
        rows = verification.statistics.suppressed
        if rows and verification.persons is not None:  # which the class of stars has several rows of
            rows = self.suppressed
        return (
            StarredRows(rows, verification.exempt, verification.violated_by_stars, verification.note) if rows else None
        )

    def _utility(self, verification: Verification) -> UtilityMeasures:
        statistics, shared = verification.statistics, verification.shared
        predicted = () if self.predicted is None else _predicted(self.predicted[1])
        shown = self.suppressed if statistics.suppressed and verification.persons else statistics.suppressed
        omitted = self.suppressed - shown if shared is None else shared.omitted
        return UtilityMeasures(statistics.c_avg(self.k), statistics.discernibility(omitted), self.gcp, *predicted)


def _predicted(measures: Measures) -> tuple[float, float | None]:
    return measures.conditional_entropy, measures.rmse
