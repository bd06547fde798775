"""Nothing that a differentially private run leaves depends on its source, but for the noisy counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlanon.engines.base import Engine
from sqlanon.plan.private import PrivatePlan
from sqlanon.plan.public_domain import NumberDomain
from sqlanon.policy import Policy
from sqlanon.runs import private_runs
from sqlanon.sql import Statement
from tests.private_leaks import FEW, MANY, left_behind
from tests.run_support import Database


def test_very_different_tables_leave_the_same(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With the same draws, which here are of no table at all."""
    few, many = (left_behind(database, rows, tmp_path, monkeypatch, caplog) for rows in (FEW, MANY))
    assert few.splitlines() == many.splitlines()
    assert "987654321" not in many
    assert "discrete laplace" in many, "the ledger is among what was gathered"


@pytest.mark.either_engine
def test_a_domain_that_is_looked_up_is_found(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its ends, the least and the greatest value, show in the labels, and are the values of single rows."""
    resolve = private_runs.resolve_private

    def look_up(policy: Policy, engine: Engine, **more: Any) -> PrivatePlan:
        plan = resolve(policy, engine, **more)
        ((least, greatest),) = engine.fetch(Statement("test", "SELECT min(age), max(age) FROM people"))
        age = plan.domains["age"]
        assert isinstance(age, NumberDomain)
        width = (greatest - least) // age.steps + 1
        return replace(plan, domains={**plan.domains, "age": replace(age, first=least, width=width)})

    monkeypatch.setattr(private_runs, "resolve_private", look_up)
    few, many = (left_behind(database, rows, tmp_path, monkeypatch, caplog) for rows in (FEW, MANY))
    assert few != many
