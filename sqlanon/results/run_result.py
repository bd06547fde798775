"""The result of a run; its fields are those of `run --json`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass

from sqlanon.results.codec import JsonObject, hidden, inline, optional, to_json
from sqlanon.results.history import HistoryFigures
from sqlanon.results.masking import Masking
from sqlanon.results.measures import (
    Check,
    Combinations,
    Disclosure,
    Distributions,
    ModelResult,
    Risk,
    SingledOut,
    SizeBucket,
    StarredRows,
    UtilityMeasures,
)
from sqlanon.results.search_facts import AlgorithmResult
from sqlanon.results.source_facts import Origin, RepeatingColumn, SourceColumn

PHASES = ("plan", "encode", "search", "recode", "verify", "publish")
NULL_CHOICE = (
    "bounds, means, midpoints and ranges describe the known values; where a region holds NULL alone they are NULL"
)


@dataclass(frozen=True)
class SourceFigures:
    """Classes of the source by its raw quasi-identifiers, with utility and risk, as of a release.

    classes_counted: the share of the classes that were counted; below 1 the figures are estimates.
    unique_rows: rows alone in their class.
    """

    classes: int
    min_class_size: int
    mean_class_size: float
    max_class_size: int | None = optional()
    class_sizes: tuple[SizeBucket, ...] | None = optional()
    classes_counted: float | None = optional()
    unique_rows: int | None = optional()
    metrics: UtilityMeasures | None = optional()
    risk: Risk | None = optional()


@dataclass(frozen=True)
class SourceResult:
    """The source of a run.

    origin: None of a file. columns: of the source. digest: of its rows.
    figures: None where the source's classes were not counted.
    """

    table: str
    rows: int
    origin: Origin | None = inline(default=None)
    columns: tuple[SourceColumn, ...] | None = optional()
    digest: str | None = optional()
    figures: SourceFigures | None = inline(default=None)

    @property
    def class_sizes(self) -> tuple[SizeBucket, ...] | None:
        """The sizes of its classes; None where they were not recorded."""
        return None if self.figures is None else self.figures.class_sizes

    @property
    def is_estimated(self) -> bool:
        """Tell whether figures of its classes are estimates."""
        counted = None if self.figures is None else self.figures.classes_counted
        return counted is not None and counted < 1

    @property
    def about(self) -> str:
        """The word before figures that are estimates."""
        return "about " if self.is_estimated else ""


@dataclass(frozen=True)
class ReleaseResult:
    """The release: its rows, those suppressed, and its equivalence classes.

    judged: the classes that are counted and that models judge, where readers do not see them; None where they do.
    fits: True where `*` fits any value, and each row is counted as a class of its own, of the rows that fit it.
    """

    table: str
    rows: int
    suppressed: int
    classes: int
    min_class_size: int
    mean_class_size: float
    max_class_size: int
    class_sizes: tuple[SizeBucket, ...]
    judged: str | None = optional()
    nulls: str | None = optional()
    fits: bool | None = optional()

    @property
    def class_words(self) -> tuple[str, str]:
        """The words for a class, and for classes: what readers do not see is called a group."""
        if self.fits:
            return "group", "groups of rows that fit a row"
        return ("class", "classes") if self.judged is None else ("group", self.judged)


@dataclass(frozen=True)
class Subject:
    """Rows and persons: what the policy declares, the identifiers that repeat or may not be read, and a note of it.

    unit: what sizes of classes, models, risk and disclosure count, `rows` or `persons`; None in older records.
    persons: how many the release has, where sizes of classes are numbers of persons; None where they are of rows.
    in_several_classes: how many of them have rows in several classes of the release.
    singled_out: how many of them are alone with some of their classes there.
    """

    declared: str | None
    repeating: tuple[RepeatingColumn, ...]
    unread: tuple[str, ...]
    note: str | None
    unit: str | None = optional()
    persons: int | None = optional()
    in_several_classes: int | None = optional()
    singled_out: SingledOut | None = optional()


@dataclass(frozen=True, kw_only=True)
class QuasiIdentifier:
    """A quasi-identifier in source and release.

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
    values: int | None = None
    labels: int
    loss: float | None


@dataclass(frozen=True)
class HierarchyUse:
    """A hierarchy that was used: its kind, levels and digest, and its file with that one's digest."""

    attribute: str
    kind: str
    digest: str
    file: str | None = optional()
    file_digest: str | None = optional()
    levels: int | None = optional()


@dataclass(frozen=True)
class CostsUse:
    """A file of costs that a model measured by: the model's place in the policy, its attribute, the file's digest."""

    place: int
    attribute: str
    file: str
    file_digest: str


@dataclass(frozen=True)
class MinimalNode:
    """A minimal generalization and the rows that it suppresses; None where these were not counted."""

    levels: tuple[int, ...]
    suppressed: int | None


@dataclass(frozen=True)
class LatticeResult:
    """The lattice that was searched.

    limits: the lowest and highest level of each attribute. budget: the rows that may be suppressed.
    complete: whether the standing of every node is known.
    satisfying, minimal: generalizations that satisfy the models, and the minimal ones; None where they were too many
        to be sorted out. listed: the first of these.
    standing: a letter for each node in lexicographic order: `?` not known, `f` fails, `a` satisfies the models, in
        upper case where it was checked. None for a large lattice.
    """

    attributes: tuple[str, ...]
    heights: tuple[int, ...]
    limits: tuple[tuple[int, int], ...]
    budget: int
    complete: bool
    satisfying: int | None
    minimal: int | None
    listed: tuple[MinimalNode, ...]
    standing: str | None


@dataclass(frozen=True)
class Seconds:
    """Durations of the phases, and of the command until its plan (`start`) and from its release on (`finish`)."""

    start: float | None = optional()
    plan: float | None = optional()
    encode: float | None = optional()
    search: float | None = optional()
    recode: float | None = optional()
    verify: float | None = optional()
    publish: float | None = optional()
    finish: float | None = optional()
    total: float | None = optional()

    @classmethod
    def of(cls, parts: Mapping[str, float]) -> Seconds:
        """The parts and their sum."""
        return cls(**parts, total=sum(parts.values()))

    @property
    def parts(self) -> dict[str, float]:
        """The parts that were measured, in their order."""
        return {name: took for name, took in to_json(self).items() if name != "total"}


@dataclass(frozen=True)
class CatalogPlace:
    """The place of the run's record: the URL of a database, without a password, and a schema."""

    url: str
    schema: str


@dataclass(frozen=True)
class Resumed:
    """The run whose recoding was to be used again, whether it was, and if not why."""

    run: str
    reused: bool
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class RunResult(JsonObject):
    """The result of a run that came to a release, or tried one.

    None stands for what was not measured, has no meaning for the run, or was not recorded by the version that ran it.
    verified: whether there was a staged release, and it passed every check. published: whether it took its place.
    began: when its plan was begun, by `time.perf_counter` of the process that ran it.
    risk: None where readers see no classes, so that no row can be picked from one.
    masking: loss and risk of a release that shows numbers and categories in place of others, and no labels.
    """

    run: str
    engine: str
    source: SourceResult
    release: ReleaseResult
    subject: Subject | None = optional()
    models: tuple[ModelResult, ...]
    starred: StarredRows | None = optional()
    metrics: UtilityMeasures
    risk: Risk | None = optional()
    disclosure: tuple[Disclosure, ...] | None = optional()
    masking: Masking | None = optional()
    quasi_identifiers: tuple[QuasiIdentifier, ...] | None = optional()
    distributions: Distributions | None = optional()
    combinations: Combinations | None = optional()
    hierarchies: tuple[HierarchyUse, ...] | None = optional()
    costs: tuple[CostsUse, ...] | None = optional()
    algorithm: AlgorithmResult
    lattice: LatticeResult | None = optional()
    checks: Mapping[str, Check] | None = optional()
    seconds: Seconds
    catalog: CatalogPlace | None = optional()
    verified: bool
    published: bool
    resumed: Resumed | None = optional()
    history: HistoryFigures | None = optional()
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    began: float | None = hidden()

    @property
    def member(self) -> str:
        """The noun for what sizes of classes, models, risk and disclosure count."""
        return "row" if self.subject is None or self.subject.persons is None else "person"

    def with_command(self, began: float) -> RunResult:
        """Add what a command took beside the phases, which began at `began` by `time.perf_counter`."""
        assert self.began is not None
        phases = self.seconds.parts
        rest = time.perf_counter() - self.began - sum(phases.values())
        seconds = Seconds.of({"start": self.began - began, **phases, "finish": rest})
        return dataclasses.replace(self, seconds=seconds)
