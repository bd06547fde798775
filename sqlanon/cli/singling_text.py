"""Text of `risk` about what singles rows out: subsets of columns, and minimal sample uniques."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlanon.cli.layout import number, percent, table
from sqlanon.results.risk import most_distinct
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.results.risk import Evidence, IdentifierSign, SubsetRisk, SudaRisk, TableRisk

SHOWN = 5  # subsets of each size


def singling_lines(risk: TableRisk) -> list[str]:
    """Tables of what was asked for."""
    return [
        *([] if risk.subsets is None else [_subsets_text(risk.subsets)]),
        *([] if risk.suda is None else [_suda_text(risk.suda, risk.rows)]),
        *([_identifiers_text(risk.identifiers)] if risk.identifiers else []),
    ]


def _subsets_text(subsets: tuple[SubsetRisk, ...]) -> str:
    """The most distinct subsets of each size."""
    rows: list[list[object]] = [
        [", ".join(one.columns), percent(one.distinction), percent(one.separation)]
        for one in most_distinct(subsets, SHOWN)
    ]
    head = f"Of {quantity(len(subsets), 'subset')} of columns, the {SHOWN} most distinct of each size:\n"
    return head + table(["columns", "distinction", "separation"], rows)


def _suda_text(suda: SudaRisk, rows: int) -> str:
    """The minimal sample uniques by their size, and what each column contributes to their scores."""
    sizes = ", ".join(f"{count:,} of {size}" for size, count in suda.minimal_uniques_by_size.items())
    have = "has" if suda.rows == 1 else "have"
    head = (
        f"Minimal sample uniques, by how many columns they need: {sizes}. {quantity(suda.rows, 'row')}"
        f" ({percent(suda.rows / max(1, rows))}) {have} one.\n"
        f"Greatest SUDA score {number(suda.score_max)}, greatest DIS-SUDA score {number(suda.dis_max)}"
        f" (sampling fraction {number(suda.fraction)}).\n"
    )
    shares = sorted(suda.contribution_by_column.items(), key=lambda one: -one[1])
    return head + table(["column", "of the scores"], [[name, percent(share / 100)] for name, share in shares])


def _identifiers_text(signs: tuple[IdentifierSign, ...]) -> str:
    """The columns that look like identifiers, and why."""
    rows: list[list[object]] = [[one.column, one.kind, _reason(one.evidence)] for one in signs]
    return "Columns that look like identifiers:\n" + table(["column", "kind", "evidence"], rows)


def _reason(evidence: Evidence) -> str:
    reasons = [word for word, holds in (("name", evidence.name), ("type", evidence.type)) if holds]
    return ", ".join([*reasons, *([] if evidence.share is None else [f"{percent(evidence.share)} of the values"])])
