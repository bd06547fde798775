"""The result of each privacy model, from figures of a table's classes."""

from __future__ import annotations

import math
from dataclasses import replace

from sqlanon.errors import PolicyError, VerificationError
from sqlanon.measures.metrics import ClassStatistics
from sqlanon.models.base import PrivacyModel
from sqlanon.models.table_model import TableModel
from sqlanon.results.measures import ModelResult

_DIGITS = 12


def model_result(
    model: PrivacyModel,
    counted: tuple[int, int],
    measured: int,
    violations: int,
    least: float | None,
    greatest: float | None,
    violating_rows: int,
) -> ModelResult:
    """Read a model's part of the statement's row; VerificationError where the worst measure contradicts the counts.

    counted: the classes that are judged, and the rows of the table.

    The search judges by the same SELECT of a model: a mistake in it would go unnoticed here without another opinion.
    """
    classes, rows = counted
    worst = None if least is None or greatest is None else model.worst_of((least, greatest))
    holds = not classes if worst is None else model.is_met_by(worst, rows)
    if measured != classes or holds not in (None, not violations):
        raise _contradiction(model)
    return ModelResult(
        model.name,
        model.shown_parameters,
        satisfied=not violations,
        worst=_rounded(worst),
        violations=int(violations),
        violating_rows=int(violating_rows),
    )


def result_of_table(model: TableModel, statistics: ClassStatistics, *, exempt: bool) -> ModelResult:
    """Judge a table as a whole by the sizes of its classes; if it violates the model, all its classes do together.

    exempt: whether suppressed rows that it shows are not judged.

    Raises PolicyError where rows have no classes, and VerificationError where the figure and its verdict contradict.
    """
    if statistics.fits:
        raise PolicyError(f"{model.name} judges classes together, and here each row has the rows that fit it.")
    sizes = dict(statistics.sizes)
    if exempt and statistics.suppressed:
        sizes[statistics.suppressed] -= 1
        sizes = {size: number for size, number in sizes.items() if number}
    classes, rows = sum(sizes.values()), sum(size * number for size, number in sizes.items())
    figure, satisfied = model.figure(sizes) if sizes else None, model.is_satisfied_by(sizes)
    holds = True if figure is None else model.is_met_by(figure, rows)
    if holds not in (None, satisfied):
        raise _contradiction(model)
    return ModelResult(
        model.name,
        model.shown_parameters,
        satisfied=satisfied,
        worst=_rounded(figure),
        violations=0 if satisfied else classes,
        violating_rows=0 if satisfied else rows,
    )


def joined_result(
    model: PrivacyModel,
    before: ModelResult,
    sets: int,
    short: int,
    least: float | None,
    greatest: float | None,
    persons: int,
) -> ModelResult:
    """Add to the result of a model, which was satisfied so far, what sets of classes of one person are measured to be.

    sets: how many there are; short: those that violate the model; persons: those who have one of these, for each.
    """
    if least is None or greatest is None:
        return before
    worst = model.worst_of((least, greatest))
    if model.is_met_by(worst, sets) is not (not short):
        raise _contradiction(model)
    return replace(
        before,
        satisfied=not short,
        worst=_rounded(worst if before.worst is None else model.worst_of((worst, before.worst))),
        violations=int(short),
        violating_rows=int(persons),
    )


def _contradiction(model: PrivacyModel) -> VerificationError:
    return VerificationError(
        f"The check of {model.name} contradicts itself, so nothing is taken for verified. Please report this."
    )


def _rounded(worst: float | None) -> float | None:
    return float(f"{worst:.{_DIGITS}g}") if worst is not None and math.isfinite(worst) else None
