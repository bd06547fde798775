"""The policy: what a table's columns are and what protection is wanted. YAML in, frozen values out."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from sqlanon.engines.urls import redacted
from sqlanon.errors import PolicyError
from sqlanon.sql import Relation

LEAST_BITS = 0.01  # the information gain below which TR 1590 cuts at medians
MOST_BINS = 2**20
DATE_LEVELS = ("day", "week", "month", "quarter", "year", "decade")

Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Role(StrEnum):
    """What a column is to privacy."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    SENSITIVE = "sensitive"
    INSENSITIVE = "insensitive"


class Show(StrEnum):
    """How the region of a numeric or ordered quasi-identifier is written in the release."""

    LABEL = "label"  # [25-34]
    BOUNDS = "bounds"  # two columns: <name>_min, <name>_max
    MEAN = "mean"
    MIDPOINT = "midpoint"
    RANGE = "range"  # PostgreSQL's range types


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)


class _Place(_Part):
    """A part that may hold a URL: shown without its password."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, redacted(value) if name == "url" and value is not None else value


def _check_table(text: str | None) -> None:
    try:
        if text is not None:
            Relation.parse(text)
    except PolicyError as error:
        raise _broken(f"has a wrong table: {error}") from None


def _broken(rule: str) -> PydanticCustomError:
    """A rule between the keys of one part is broken; `rule` is the sentence that says so."""
    return PydanticCustomError("rule", "{sentence}", {"sentence": rule})


class Hierarchy(_Part):
    """A generalization hierarchy; exactly one of mask, date, intervals, csv, mapping, suppress is given."""

    mask: Literal["left", "right"] | None = None
    """Text: level n replaces n characters from this side by `*`."""
    length: Whole | None = Field(default=None, ge=1)
    """With mask: the characters that values count as having, so that levels mean the same whatever values there are;
    without it those of the longest value."""
    date: tuple[Literal["day", "week", "month", "quarter", "year", "decade"], ...] | None = None
    """Dates and timestamps: the levels, from fine to coarse."""
    intervals: tuple[Whole | Number, ...] | None = None
    """Numbers: the widths of the intervals, from narrow to wide."""
    origin: Whole | Number = 0
    """Where the intervals begin to count."""
    csv: str | None = None
    """A file of lines `value;level 1;...;*`, the format that ARX reads and writes."""
    mapping: dict[str, str | tuple[str, ...]] | None = None
    """Each value with its label, or with its labels from level 1 up."""
    suppress: Annotated[bool, Field(strict=True)] = False
    """The value itself, or `*`; `hierarchy: suppress` is short for it."""
    unknown: str | None = None
    """With csv and mapping: the label of the group of all values they lack. Without it, such values are an error."""

    @property
    def kind(self) -> str:
        """Which of the six kinds it is."""
        return self.kinds[0]

    @property
    def kinds(self) -> list[str]:
        """The kinds given; a valid hierarchy has one."""
        given = {name: getattr(self, name) for name in HIERARCHY_KINDS}
        return [name for name, value in given.items() if value is not None and value is not False]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.kinds) != 1:
            raise _broken(f"must hold exactly one of {', '.join(HIERARCHY_KINDS)}.")
        if "origin" in self.model_fields_set and self.intervals is None:
            raise _broken("has an origin, which only intervals have.")
        if self.unknown is not None and self.kind not in ("csv", "mapping"):
            raise _broken("has unknown, which only csv and mapping have.")
        if self.length is not None and self.mask is None:
            raise _broken("has length, which only mask has.")
        self._check_levels()
        return self

    def _check_levels(self) -> None:
        if self.date is not None:
            order = [DATE_LEVELS.index(level) for level in self.date]
            if not order or order != sorted(set(order)):
                raise _broken(f"must list date levels from fine to coarse, each once: {', '.join(DATE_LEVELS)}.")
        if self.intervals is not None and not _ascending(self.intervals):
            raise _broken("must list interval widths that are positive and grow.")
        if self.mapping is not None:
            depths = {1 if isinstance(labels, str) else len(labels) for labels in self.mapping.values()}
            if len(depths) != 1 or 0 in depths:
                raise _broken("must map every value to the same number of levels, at least one.")


def _bins(value: Any) -> Any:
    """`exact`, or how many; told here in one sentence, where a union would tell of each of its members."""
    if value != "exact" and (not isinstance(value, int) or isinstance(value, bool) or not 2 <= value <= MOST_BINS):
        raise _broken(f"must be exact, or a whole number from 2 to {MOST_BINS:,}.")
    return value


def _ascending(widths: tuple[float | int, ...]) -> bool:
    return bool(widths) and widths[0] > 0 and all(low < high for low, high in pairwise(widths))


HIERARCHY_KINDS = ("mask", "date", "intervals", "csv", "mapping", "suppress")


class Attribute(_Part):
    """What the policy says of one column."""

    role: Role
    """What the column is to privacy."""
    hierarchy: Hierarchy | None = None
    """How a quasi-identifier is generalized; without one numbers, dates and enums are cut into ranges and texts into
    sets."""
    show: Show = Show.LABEL
    """How the release writes a region: `label` as text, `bounds` as two columns `<name>_min` and `<name>_max`,
    `mean` and `midpoint` as a number, `range` as a range type of PostgreSQL."""
    nulls: Literal["allow", "refuse"] = "allow"
    """Whether the column may hold NULL, which is a value of its own."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.hierarchy is not None and self.role not in (Role.QUASI_IDENTIFIER, Role.SENSITIVE):
            raise _broken(f"has a hierarchy, which an attribute with role {self.role.value} does not use.")
        if self.show is not Show.LABEL and self.role is not Role.QUASI_IDENTIFIER:
            raise _broken(f"has show, which an attribute with role {self.role.value} does not use.")
        return self


class Source(_Place):
    """Where the microdata table is: a database's table (url and table), or a file that DuckDB reads."""

    url: str | None = None
    """The database of the microdata table; `${NAME}` is replaced by the environment's value, `$$` by `$`."""
    table: str | None = None
    """The table, as SQL writes it."""
    file: str | None = None
    """A .csv, .tsv or .parquet file instead, relative to the policy; `${NAME}` is replaced."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.file is None) == (self.url is None or self.table is None) or (self.file and (self.url or self.table)):
            raise _broken("must hold either url and table, or file.")
        _check_table(self.table)
        return self


class Release(_Place):
    """Where the protected table goes (table or file); in the source's database unless `url` is given."""

    url: str | None = None
    """The database of the release, if another than the source's; `${NAME}` is replaced by the environment's value,
    `$$` by `$`."""
    table: str | None = None
    """The table, as SQL writes it."""
    file: str | None = None
    """A .parquet, .csv or .csv.gz file instead, relative to the policy; `${NAME}` is replaced."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.table is None) == (self.file is None):
            raise _broken("must hold either table or file.")
        if self.file is not None and self.url is not None:
            raise _broken("must not hold url, as it is a file.")
        _check_table(self.table)
        return self


class KAnonymity(_Part):
    """Every equivalence class holds at least k rows."""

    model: Literal["k-anonymity"]
    k: Whole = Field(ge=1)
    """The least rows of a class."""


class DistinctLDiversity(_Part):
    """Every class holds at least l distinct values of the sensitive attribute."""

    model: Literal["distinct-l-diversity"]
    attribute: str
    """The sensitive attribute."""
    l: Whole = Field(ge=1)  # noqa: E741
    """The least number of values."""


class EntropyLDiversity(_Part):
    """Shannon entropy of the sensitive attribute in every class is at least log(l)."""

    model: Literal["entropy-l-diversity"]
    attribute: str
    """The sensitive attribute."""
    l: Number = Field(ge=1)  # noqa: E741
    """The number of equally frequent values whose entropy is the least allowed."""


class RecursiveLDiversity(_Part):
    """x1 < c * (x_l + ... + x_m) in every class, x being its value counts in descending order."""

    model: Literal["recursive-l-diversity"]
    attribute: str
    """The sensitive attribute."""
    c: Number = Field(gt=0)
    """How many times the rarer values the most frequent one must stay below."""
    l: Whole = Field(ge=1)  # noqa: E741
    """The place from which values count as rarer ones."""


class TCloseness(_Part):
    """The distance between a class's distribution and the table's is at most t."""

    model: Literal["t-closeness"]
    attribute: str
    """The sensitive attribute."""
    distance: Literal["equal", "ordered", "hierarchical", "kl"] = "equal"
    """`equal` is the variational distance, `ordered` and `hierarchical` the earth mover's, `kl` the Kullback-Leibler
    divergence."""
    t: Number = Field(ge=0)
    """The greatest distance."""


class VarianceDiversity(_Part):
    """The population variance of a numeric sensitive attribute in every class is at least v."""

    model: Literal["variance-diversity"]
    attribute: str
    """The sensitive attribute."""
    v: Number = Field(ge=0)
    """The least variance, in the attribute's unit squared."""


Model = Annotated[
    KAnonymity | DistinctLDiversity | EntropyLDiversity | RecursiveLDiversity | TCloseness | VarianceDiversity,
    Field(discriminator="model"),
]


Quality = Literal["loss", "precision", "discernibility", "aecs", "entropy", "height", "kl-divergence"]
WEIGHTED = ("loss", "precision", "entropy", "height")


class Mondrian(_Part):
    """Cuts the table at medians and hierarchies for as long as every part satisfies all models: rothko-t with
    `split: median`."""

    name: Literal["mondrian"] = "mondrian"


class Splits(_Part):
    """How the cuts of a partition tree are chosen."""

    split: Literal["median", "information-gain", "regression"] = "median"
    """How a cut is chosen: at the `median` of the widest attribute; by `information-gain`, so that the class is least
    uncertain in the parts; by `regression`, so that a number varies least in them."""
    target: str | None = None
    """With information-gain and regression: the sensitive or insensitive attribute that readers of the release want to
    predict."""
    bins: Annotated[Literal["exact"] | int, BeforeValidator(_bins)] = "exact"
    """Where a range may be cut: `exact` is at every value, a number at the borders of at most so many bins of equal
    width."""
    least_gain: Number | None = Field(default=None, ge=0)
    """A part where no cut gains so much is cut at medians from then on: in bits with information-gain (0.01 if not
    given), as a share of its squared error with regression (0 if not given)."""

    @property
    def least(self) -> float:
        """The least gain, given or not."""
        if self.least_gain is not None:
            return self.least_gain
        return LEAST_BITS if self.split == "information-gain" else 0.0

    @model_validator(mode="after")
    def _check_split(self) -> Self:
        if (self.target is not None) != (self.split != "median"):
            raise _broken("must have a target with split: information-gain or regression, and only with those.")
        for key in ("bins", "least_gain"):
            if key in self.model_fields_set and self.split == "median":
                raise _broken(f"has {key}, which split: median does not use.")
        return self


class RothkoT(Splits):
    """Cuts the table into regions for as long as every part satisfies all models: at medians, or where it tells most of
    a target."""

    name: Literal["rothko-t"]


class RothkoS(Splits):
    """The same for tables far larger than memory: the tree is grown on a sample, where a split must be allowable with
    high confidence, checked and pruned on all rows, and finished on them. docs/sampling.md says when to choose it."""

    name: Literal["rothko-s"]
    sample: Whole = Field(default=200_000, ge=2)
    """The rows of a sample; a node that has no more rows is worked on as it is."""
    alpha: Number = Field(default=0.05, gt=0, lt=0.5)
    """The probability with which a split on the sample may be one that the models forbid; it would be undone."""
    seed: Whole = Field(default=1, ge=0)
    """What the sample depends on, beside the rows: the same seed gives the same release."""
    exact_below: Whole = Field(default=8000, ge=0)
    """A part of fewer rows, by the sample, is cut on all its rows: the fewer sampled rows decide a cut, the more it is
    off. 0 leaves to the sample whatever the tests allow."""

    @property
    def on_all_rows(self) -> RothkoT:
        """The algorithm that splits in the same way without a sample."""
        shared = {key: getattr(self, key) for key in Splits.model_fields}
        return RothkoT.model_construct(name="rothko-t", **shared)


class TopDown(_Part):
    """Cuts every quasi-identifier's hierarchy somewhere, each branch at a level of its own: from `*` down, the group
    whose children gain most takes their place, for as long as every class satisfies all models."""

    name: Literal["top-down"]
    quality: Literal["loss", "information-gain"] = "loss"
    """What is to be gained: less `loss`, or more that the quasi-identifiers tell of the target."""
    target: str | None = None
    """With information-gain: the sensitive or insensitive attribute that readers of the release want to predict."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.target is not None) != (self.quality == "information-gain"):
            raise _broken("must have a target with quality: information-gain, and only with that.")
        return self


class _FullDomain(_Part):
    """Full-domain generalization: every value of a column is shown at one level of its hierarchy."""

    quality: Quality = "loss"
    """What the released generalization is best in, among those that the algorithm finds; docs/quality.md has the
    formulas."""
    aggregate: Literal["geometric", "arithmetic", "max"] = "geometric"
    """How the `loss` of the quasi-identifiers is taken together."""
    weights: dict[str, Number] = {}
    """How much a quasi-identifier counts in `loss`, `precision`, `entropy` and `height`; 1 where none is given."""
    limits: dict[str, tuple[Whole, Whole]] = {}
    """The least and the greatest level that a quasi-identifier may be shown at. Levels that its hierarchy does not have
    are refused: a mask has one for each character of the longest value, which depends on the table."""
    recoding: Literal["full-domain", "attribute-suppression"] = "full-domain"
    """`full-domain` shows a quasi-identifier at any level of its hierarchy; `attribute-suppression` as it is (level 0)
    or as `*` (level 1), with nothing between."""

    @property
    def suppresses_attributes(self) -> bool:
        """Whether a quasi-identifier is shown as it is or as `*`, with nothing between."""
        return self.recoding == "attribute-suppression"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if "aggregate" in self.model_fields_set and self.quality != "loss":
            raise _broken(f"has an aggregate, which only quality: loss uses, not {self.quality}.")
        if self.weights and self.quality not in WEIGHTED:
            raise _broken(f"has weights, which quality: {self.quality} does not use; {', '.join(WEIGHTED)} do.")
        for attribute, weight in self.weights.items():
            if weight < 0:
                raise _broken(f"has a negative weight for '{attribute}'.")
        for attribute, (low, high) in self.limits.items():
            if not 0 <= low <= high:
                raise _broken(f"has limits for '{attribute}' that are not two levels, the lower one first.")
        return self


class Incognito(_FullDomain):
    """Finds all generalizations that satisfy the models, subset by subset of the quasi-identifiers, and releases the
    best of the minimal ones."""

    name: Literal["incognito"]
    variant: Literal["basic", "super-roots", "cube"] = "basic"
    """Where frequency sets come from: `basic` counts the roots of a candidate graph from the table, `super-roots` the
    roots of a family together, `cube` all of them from the sets of ungeneralized subsets."""


class Samarati(_FullDomain):
    """Finds the generalizations of minimal height by binary search, and releases the best of them."""

    name: Literal["samarati"]


class BottomUp(_FullDomain):
    """Finds all generalizations that satisfy the models, breadth first from the table as it is, and releases the best
    of the minimal ones."""

    name: Literal["bottom-up"]
    rollup: bool = True
    """Whether a frequency set is rolled up from a more specific one instead of counted from the table."""


class Optimal(_FullDomain):
    """Finds the generalization of the best quality within the suppression budget, by branch and bound."""

    name: Literal["optimal"]


class Datafly(_FullDomain):
    """Generalizes, time and again, the attribute with the most distinct values; fast, and not minimal."""

    name: Literal["datafly"]


FullDomain = Incognito | Samarati | BottomUp | Optimal | Datafly
Tree = Mondrian | RothkoT
Algorithm = Annotated[Mondrian | RothkoT | RothkoS | TopDown | FullDomain, Field(discriminator="name")]


class Catalog(_Place):
    """Where runs and releases are recorded: by default the source's database; of a source file, the release's."""

    url: str | None = None
    """Its database."""
    schema_: str = Field(default="sqlanon", alias="schema", min_length=1)
    """The schema of its tables."""


class Policy(_Part):
    """A whole policy, as `policy.yml` holds it."""

    source: Source
    """Where the microdata table is."""
    release: Release
    """Where the release goes."""
    attributes: dict[str, Attribute] = Field(min_length=1)
    """Every column of the table, with its role."""
    privacy: tuple[Model, ...] = Field(min_length=1)
    """The models that every class must satisfy, all of them."""
    algorithm: Algorithm = Mondrian()
    """How the release is searched for."""
    suppression: Number = Field(default=0.0, ge=0, lt=1)
    """The largest share of rows that may be left out."""
    remainder: Literal["suppress", "recode"] = "suppress"
    """What full-domain generalization does with rows in classes that violate a model: leaves them out, or generalizes
    them again among themselves, further up."""
    suppressed: Literal["omit", "star"] = "omit"
    """What becomes of them: left out, or shown with `*` for every quasi-identifier."""
    republish: Literal["allow", "same-recoding"] = "allow"
    """Whether the source may be released again by other rules than before: who holds both releases can intersect the
    classes of a person. With `same-recoding` only `apply` and jobs with the rules of the earlier release may."""
    digest: Literal["run", "record"] = "record"
    """When the release is digested for its record: in the `run`, before it is published; or when the `record` is
    written, which costs runs nothing, and can't tell of what was done to the release before that."""
    catalog: Catalog = Catalog()
    """Where runs are recorded."""

    @property
    def target(self) -> str | None:
        """The attribute that the algorithm keeps predictable, if it has one."""
        return getattr(self.algorithm, "target", None)
