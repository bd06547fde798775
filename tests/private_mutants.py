"""Mutants of differentially private runs, each a mistake that breaks the guarantee: audits must find all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sqlanon.catalog import budgets
from sqlanon.engines.base import Engine
from sqlanon.errors import EngineError
from sqlanon.mechanisms import mechanisms
from sqlanon.mechanisms.mechanisms import OpenDP
from sqlanon.methods.differential_privacy import source as private_runs
from sqlanon.methods.differential_privacy.drawing import accounting, drawing, scoring
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.public_domain import NumberDomain
from sqlanon.policy import Policy
from sqlanon.sql import Statement
from tests.budgets_support import sql

Mutate = Callable[[pytest.MonkeyPatch], None]


def half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mechanisms._measurement

    def half(make: Any, epsilon: Fraction, sensitivity: int, scale: Fraction) -> tuple[Any, Fraction]:
        return whole(make, 2 * epsilon, sensitivity, scale / 2)

    monkeypatch.setattr(mechanisms, "_measurement", half)


def half_the_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the account, too."""
    whole = accounting.Schedule.charges.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(
        accounting.Schedule,
        "charges",
        property(lambda schedule: [replace(one, scale=one.scale / 2) for one in whole(schedule)]),
    )


def same_noise_in_all_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = OpenDP.add_noise_to_many
    monkeypatch.setattr(
        OpenDP,
        "add_noise_to_many",
        lambda self, counts, *share: counts + whole(self, np.zeros(1, dtype=np.int64), *share)[0],
    )


def reused_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run that failed, for the one that tries again."""
    kept: list[int] = []
    whole = OpenDP.add_noise_to_many

    def add_noise(self: OpenDP, counts: Any, *share: Any) -> Any:
        if len(kept) < len(counts):
            kept[:] = whole(self, np.zeros(len(counts), dtype=np.int64), *share).tolist()
        return counts + np.array(kept[: len(counts)])

    monkeypatch.setattr(OpenDP, "add_noise_to_many", add_noise)


def fixed_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def add_noise(_self: OpenDP, counts: Any, *_: Any) -> Any:
        draws = np.random.default_rng(7)
        return counts + draws.geometric(0.6, len(counts)) - draws.geometric(0.6, len(counts))

    monkeypatch.setattr(OpenDP, "add_noise_to_many", add_noise)


def half_the_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting, "score_of", lambda *_: scoring.MostFrequent(scoring.GRAIN // 2, True, True))


def looked_up_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ends, the least and the greatest value, show in the labels, and are the values of single rows."""
    resolve = private_runs.resolve_private

    def look_up(policy: Policy, engine: Engine, **more: Any) -> PrivatePlan:
        plan = resolve(policy, engine, **more)
        name = next(name for name, domain in plan.domains.items() if isinstance(domain, NumberDomain))
        ((least, greatest),) = engine.fetch(Statement("test", f"SELECT min({name}), max({name}) FROM {plan.source}"))
        domain = plan.domains[name]
        assert isinstance(domain, NumberDomain)
        width = ((greatest or 0) - (least or 0)) // domain.steps + 1
        looked_up = replace(domain, first=least or 0, width=width)
        return replace(plan, domains={**plan.domains, name: looked_up})

    monkeypatch.setattr(private_runs, "resolve_private", look_up)


def no_empty_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drawing._all_cells

    def leave_out(counted: Any, *given: Any) -> list[tuple[int, int]]:
        return [one for one in whole(counted, *given) if one[0] in set(counted.cells.tolist())]

    monkeypatch.setattr(drawing, "_all_cells", leave_out)


def no_empty_cells_above_a_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenDP, "reach", lambda *_: [])


def budget_consumed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "require_covered", lambda *_: None)


def refund(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = private_runs.PrivateDraw.make

    def make(self: Any, run: Any, **given: Any) -> Any:
        try:
            return whole(self, run, **given)
        except EngineError:
            sql(run.engine, "DELETE FROM sqlanon.budget_entries")
            sql(run.engine, "UPDATE sqlanon.budgets SET entries = 0")
            raise

    monkeypatch.setattr(private_runs.PrivateDraw, "make", make)


def count_of_rows_in_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result tells how many rows the source has."""
    whole = private_runs.PrivateDraw.conclude

    def conclude(self: Any, run: Any) -> Any:
        ((rows,),) = run.engine.fetch(Statement("test", f"SELECT count(*) FROM {run.plan.source}"))
        run.notes += (f"{rows} rows were read.",)
        return whole(self, run)

    monkeypatch.setattr(private_runs.PrivateDraw, "conclude", conclude)


def cells_of_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row in a cell beyond 2^31 makes a run fail."""
    whole = Engine.fetch_blocks

    def fetch_blocks(engine: Engine, statement: Statement) -> Any:
        assert statement.name == "methods/differential_privacy/count_cells"
        return whole(engine, replace(statement, text=statement.text.replace("AS BIGINT", "AS INTEGER")))

    monkeypatch.setattr(Engine, "fetch_blocks", fetch_blocks)


MUTANTS: dict[str, tuple[Mutate, str]] = {
    "half the noise": (half_the_noise, "samples"),
    "half the scale, in the account too": (half_the_scale, "schedule"),
    "the same noise in all cells": (same_noise_in_all_cells, "samples"),
    "noise reused on retry": (reused_noise, "samples"),
    "a fixed seed": (fixed_seed, "samples"),
    "half the sensitivity": (half_the_sensitivity, "neighbours"),
    "MIN and MAX as domain": (looked_up_domain, "neighbours"),
    "no empty cells": (no_empty_cells, "samples"),
    "no empty cells, by the run's own check": (no_empty_cells, "neighbours"),
    "no empty cells above a threshold": (no_empty_cells_above_a_threshold, "threshold"),
    "a budget consumed twice": (budget_consumed_twice, "account"),
    "a refund after an error": (refund, "account"),
    "the number of rows in a note": (count_of_rows_in_a_warning, "neighbours"),
}
"""Each mutant with the audit that must find it."""
