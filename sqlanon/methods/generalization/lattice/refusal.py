"""Explain why no generalization can be released: the model that fails at the nearest, the suppression that would do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal

from sqlanon.encoding.domains import require_attainable
from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.errors import ProtectionError
from sqlanon.methods.generalization.lattice.problem import Findings, Problem
from sqlanon.models.base import PrivacyModel

_DIGITS = Decimal("0.0001")  # suppression is offered in steps of this


def levels_text(lattice: Lattice, node: Node) -> str:
    """A generalization as `--levels` takes it."""
    return ",".join(f"{name_in_levels(name)}={level}" for name, level in zip(lattice.names, node, strict=True))


def name_in_levels(name: str) -> str:
    """A column as `--levels` takes it: in double quotes where it would be read otherwise."""
    if any(char in name for char in ',="') or name != name.strip():
        return '"' + name.replace('"', '""') + '"'
    return name


def refusal(problem: Problem, findings: Findings) -> ProtectionError:
    """The error for a search that found nothing to release."""
    lattice, task = problem.lattice, problem.sets.task
    within = f"the models within the suppression budget ({_rows(task.budget, task.rows)})"
    lines = [f"{_searched(problem, findings)} {within}."]
    lines += _unattainable(problem.sets)
    lines.append(_failures(problem, lattice.top, "The most general one"))
    near = _nearest(problem, findings)
    lines.append(_remedy(problem, near))
    lines += _limits(lattice)
    return ProtectionError("\n".join(lines))


def _searched(problem: Problem, findings: Findings) -> str:
    """Say how sure it is that no generalization satisfies the models."""
    if not findings.proven and problem.is_late:
        return "Within the time limit, no generalization was found that satisfies"
    if not findings.proven and not problem.sets.task.predictive:
        return "The search found no generalization that satisfies"
    return "No generalization satisfies"


def refusal_of(problem: Problem, node: Node) -> ProtectionError:
    """The error for a generalization that was picked and violates the models."""
    budget = _rows(problem.sets.task.budget, problem.sets.task.rows)
    first = f"{_failures(problem, node, 'The generalization')} The suppression budget is {budget}."
    return ProtectionError("\n".join([first, _remedy(problem, node, "This generalization")]))


def _rows(rows: int, of: int) -> str:
    return f"{rows:,} of {of:,} rows"


def _judging(sets: FrequencySets, models: Sequence[PrivacyModel]) -> FrequencySets:
    """The same sets for some of the models, counting on however many rows are to be suppressed."""
    return replace(sets, task=replace(sets.task, models=tuple(models), budget=sets.task.rows))


def _needed(sets: FrequencySets, node: Node) -> int:
    """The rows that a generalization would have to suppress."""
    return min(sets.task.rows, _judging(sets, sets.task.models).check(node).suppressed)


def _failures(problem: Problem, node: Node, what: str) -> str:
    failing = [
        f"{_model_text(model)} fails for {rows:,} rows"
        for model in problem.sets.task.models
        if (rows := min(problem.sets.task.rows, _judging(problem.sets, [model]).check(node).suppressed))
    ]
    together = "; ".join(failing) or "each model alone is within reach, but not all together"
    return f"{what}, {levels_text(problem.lattice, node)}: {together}."


def _model_text(model: PrivacyModel) -> str:
    wanted = {**({} if model.attribute is None else {"attribute": model.attribute}), **model.parameters}
    return f"{model.name} ({', '.join(f'{key}: {value}' for key, value in wanted.items())})"


def _nearest(problem: Problem, findings: Findings) -> Node:
    """The one that suppresses least, of those that the search checked and the most general one."""
    checked = min(findings.verdicts, key=lambda node: (findings.verdicts[node].suppressed, node), default=None)
    candidates = [problem.lattice.top, *([] if checked is None else [checked])]
    return min(candidates, key=lambda node: (_needed(problem.sets, node), node))


def _remedy(problem: Problem, node: Node, what: str = "The nearest found") -> str:
    rows, needed = problem.sets.task.rows, _needed(problem.sets, node)
    where = f"{what}, {levels_text(problem.lattice, node)}, would have to suppress {_rows(needed, rows)}"
    if problem.sets.task.covers_population:
        return f"{where}: nobody of the population may be left out, so no suppression would do."
    share = (Decimal(needed) / Decimal(rows)).quantize(_DIGITS, ROUND_CEILING)
    if needed >= rows or share >= 1:
        return f"{where}: no suppression would do."
    return f"{where}: suppression: {share} would do."


def _unattainable(sets: FrequencySets) -> Iterator[str]:
    """Name the models that no part of the table can satisfy, since the whole table as one class does not."""
    whole = [model for model in sets.task.models if model.closed_under_union]
    try:
        require_attainable(sets.engine, sets.task.rows, whole, sets.task.sensitive)
    except ProtectionError as error:
        yield str(error)


def _limits(lattice: Lattice) -> Iterator[str]:
    held = [
        f"{name} to level {top}"
        for name, height, top in zip(lattice.names, lattice.heights, lattice.top, strict=True)
        if top < height
    ]
    if held:
        yield f"algorithm.limits hold {', '.join(held)}; higher limits may do."
