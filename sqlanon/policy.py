"""The policy: what a table's columns are and what protection is wanted. YAML in, frozen values out."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


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
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Hierarchy(_Part):
    """A generalization hierarchy; exactly one of mask, date, intervals, csv, mapping, suppress is given."""

    mask: Literal["left", "right"] | None = None
    date: tuple[Literal["day", "week", "month", "quarter", "year", "decade"], ...] | None = None
    intervals: tuple[float | int, ...] | None = None
    origin: float | int = 0
    csv: str | None = None
    mapping: dict[str, str | tuple[str, ...]] | None = None
    suppress: bool = False
    unknown: str | None = None


class Attribute(_Part):
    """What the policy says of one column."""

    role: Role
    hierarchy: Hierarchy | None = None
    show: Show = Show.LABEL
    nulls: Literal["allow", "refuse"] = "allow"


class Source(_Part):
    """Where the microdata table is: a database's table, or a file that DuckDB reads."""

    url: str | None = None
    table: str | None = None
    file: str | None = None


class Release(_Part):
    """Where the protected table goes; in the source's database unless `url` is given."""

    url: str | None = None
    table: str | None = None
    file: str | None = None


class KAnonymity(_Part):
    """Every equivalence class holds at least k rows."""

    model: Literal["k-anonymity"]
    k: int = Field(ge=1)


class DistinctLDiversity(_Part):
    """Every class holds at least l distinct values of the sensitive attribute."""

    model: Literal["distinct-l-diversity"]
    attribute: str
    l: int = Field(ge=1)  # noqa: E741


class EntropyLDiversity(_Part):
    """Shannon entropy of the sensitive attribute in every class is at least log(l)."""

    model: Literal["entropy-l-diversity"]
    attribute: str
    l: float = Field(ge=1)  # noqa: E741


class RecursiveLDiversity(_Part):
    """x1 < c * (x_l + ... + x_m) in every class, x being its value counts in descending order."""

    model: Literal["recursive-l-diversity"]
    attribute: str
    c: float = Field(gt=0)
    l: int = Field(ge=1)  # noqa: E741


class TCloseness(_Part):
    """The distance between a class's distribution and the table's is at most t."""

    model: Literal["t-closeness"]
    attribute: str
    distance: Literal["equal", "ordered", "hierarchical", "kl"] = "equal"
    t: float = Field(ge=0)


class VarianceDiversity(_Part):
    """The population variance of a numeric sensitive attribute in every class is at least v."""

    model: Literal["variance-diversity"]
    attribute: str
    v: float = Field(ge=0)


Model = Annotated[
    KAnonymity | DistinctLDiversity | EntropyLDiversity | RecursiveLDiversity | TCloseness | VarianceDiversity,
    Field(discriminator="model"),
]


class Algorithm(_Part):
    """The search for an anonymization."""

    name: Literal["mondrian"] = "mondrian"


class Catalog(_Part):
    """Where runs and releases are recorded; by default the database of the release."""

    url: str | None = None
    schema_: str = Field(default="sqlanon", alias="schema")


class Policy(_Part):
    """A whole policy, as `policy.yml` holds it."""

    source: Source
    release: Release
    attributes: dict[str, Attribute]
    privacy: tuple[Model, ...] = Field(min_length=1)
    algorithm: Algorithm = Algorithm()
    suppression: float = Field(default=0.0, ge=0, lt=1)
    suppressed: Literal["omit", "star"] = "omit"
    catalog: Catalog = Catalog()
