"""The result of a run that copied rows and masked identifiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sqlanon.results.codec import optional
from sqlanon.results.measures import Check
from sqlanon.results.method_result import MethodResult
from sqlanon.results.run_result import CatalogPlace


@dataclass(frozen=True)
class MaskedColumn:
    """A column of the release: its type there, its role in the policy, and `kept` or the form that it is shown in."""

    name: str
    type: str
    role: str
    shown: str


@dataclass(frozen=True, kw_only=True)
class MaskingResult(MethodResult):
    """The result of a run that copied rows and masked identifiers.

    columns: of the release, in their order. omitted: the columns of the source that the release lacks.
    digest: of the release, always that of a file. row_hashes: of a table the sum of the hashes of its rows, by the
    engine at its version. released: the type of each released column, in their order.
    """

    shows: ClassVar[str] = "rows as they are, without identifiers"
    release_of: ClassVar[str] = "a release by algorithm: masking"
    no_rules: ClassVar[str] = "it copied rows. To treat new rows, run the policy again (sqlanon run)."
    run: str
    engine: str
    source: str
    rows: int
    release: str
    algorithm: str
    columns: tuple[MaskedColumn, ...]
    omitted: tuple[str, ...]
    digest: str | None = optional()
    row_hashes: str | None = optional()
    released: Mapping[str, str] | None = optional()
    checks: Mapping[str, Check]
    catalog: CatalogPlace
    published: bool
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
