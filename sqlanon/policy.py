"""The policy: what a table's columns are and what protection is wanted. YAML in, frozen values out."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from sqlanon.engines.urls import redacted
from sqlanon.errors import PolicyError
from sqlanon.sql import Relation

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
    date: tuple[Literal["day", "week", "month", "quarter", "year", "decade"], ...] | None = None
    intervals: tuple[Whole | Number, ...] | None = None
    origin: Whole | Number = 0
    csv: str | None = None
    mapping: dict[str, str | tuple[str, ...]] | None = None
    suppress: Annotated[bool, Field(strict=True)] = False
    unknown: str | None = None

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


def _ascending(widths: tuple[float | int, ...]) -> bool:
    return bool(widths) and widths[0] > 0 and all(low < high for low, high in pairwise(widths))


HIERARCHY_KINDS = ("mask", "date", "intervals", "csv", "mapping", "suppress")


class Attribute(_Part):
    """What the policy says of one column."""

    role: Role
    hierarchy: Hierarchy | None = None
    show: Show = Show.LABEL
    nulls: Literal["allow", "refuse"] = "allow"

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
    table: str | None = None
    file: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.file is None) == (self.url is None or self.table is None) or (self.file and (self.url or self.table)):
            raise _broken("must hold either url and table, or file.")
        _check_table(self.table)
        return self


class Release(_Place):
    """Where the protected table goes (table or file); in the source's database unless `url` is given."""

    url: str | None = None
    table: str | None = None
    file: str | None = None

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


class DistinctLDiversity(_Part):
    """Every class holds at least l distinct values of the sensitive attribute."""

    model: Literal["distinct-l-diversity"]
    attribute: str
    l: Whole = Field(ge=1)  # noqa: E741


class EntropyLDiversity(_Part):
    """Shannon entropy of the sensitive attribute in every class is at least log(l)."""

    model: Literal["entropy-l-diversity"]
    attribute: str
    l: Number = Field(ge=1)  # noqa: E741


class RecursiveLDiversity(_Part):
    """x1 < c * (x_l + ... + x_m) in every class, x being its value counts in descending order."""

    model: Literal["recursive-l-diversity"]
    attribute: str
    c: Number = Field(gt=0)
    l: Whole = Field(ge=1)  # noqa: E741


class TCloseness(_Part):
    """The distance between a class's distribution and the table's is at most t."""

    model: Literal["t-closeness"]
    attribute: str
    distance: Literal["equal", "ordered", "hierarchical", "kl"] = "equal"
    t: Number = Field(ge=0)


class VarianceDiversity(_Part):
    """The population variance of a numeric sensitive attribute in every class is at least v."""

    model: Literal["variance-diversity"]
    attribute: str
    v: Number = Field(ge=0)


Model = Annotated[
    KAnonymity | DistinctLDiversity | EntropyLDiversity | RecursiveLDiversity | TCloseness | VarianceDiversity,
    Field(discriminator="model"),
]


class Algorithm(_Part):
    """The search for an anonymization."""

    name: Literal["mondrian"] = "mondrian"


class Catalog(_Place):
    """Where runs and releases are recorded; by default the database of the release."""

    url: str | None = None
    schema_: str = Field(default="sqlanon", alias="schema", min_length=1)


class Policy(_Part):
    """A whole policy, as `policy.yml` holds it."""

    source: Source
    release: Release
    attributes: dict[str, Attribute] = Field(min_length=1)
    privacy: tuple[Model, ...] = Field(min_length=1)
    algorithm: Algorithm = Algorithm()
    suppression: Number = Field(default=0.0, ge=0, lt=1)
    suppressed: Literal["omit", "star"] = "omit"
    catalog: Catalog = Catalog()
