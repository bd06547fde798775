"""Tests that ask for a method which was removed, by `git rm` or by `tests.without_method`: they are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sqlanon
from sqlanon.policy.registry import Registry

NAMES = {
    "partitioning": ("mondrian", "rothko-t", "rothko-s"),
    "generalization": ("top-down", "incognito", "samarati", "bottom-up", "optimal", "datafly"),
    "intervals": ("ordered-sets",),
    "clustering": ("microaggregation", "r-gather", "condensation"),
    "cells": ("local-suppression", "cell-generalization"),
    "differential_privacy": ("diffgen", "contingency", "marginals", "mst", "differential-privacy"),
    "randomization": ("randomize", "randomization"),
    "itemsets": ("apriori",),
    "rule_hiding": ("hide-rules", "hidden-rules"),
    "masking": ("masking",),
    "invariance": ("buckets",),
}
"""The names that each method gives to policies."""
MISSING = [name for name in NAMES if not (Path(sqlanon.__file__).parent / "methods" / name).is_dir()]


class MissingMethods:
    """Leaves out the tests that ask for a missing method, and fails all others as usual."""

    def __init__(self) -> None:
        self._names = {name for method in MISSING for name in NAMES[method]}
        self._is_asked = False
        rooms, names = "|".join(MISSING), "|".join(self._names)
        self._asking = re.compile(
            rf"(sqlanon|tests)[./]methods[./]({rooms})\b|'({names})' is unknown|algorithm '({names})'"
        )
        find = Registry.parameters_of

        def noted(registry: Registry[Any], name: Any) -> Any:
            there = find(registry, name)
            self._is_asked |= there is None and name in self._names
            return there

        Registry.parameters_of = noted  # type: ignore[method-assign]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        report: Any = yield
        if report.failed and self._asks(str(report.longrepr)):
            report.outcome, report.wasxfail = "skipped", f"asks for {' or '.join(MISSING)}, which is not there"
        if call.when == "teardown":
            self._is_asked = False
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        report: Any = yield
        if report.failed and self._asks(str(report.longrepr)):
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 0, f"asks for {' or '.join(MISSING)}, which is not there")
        return report

    def _asks(self, text: str) -> bool:
        return self._is_asked or self._asking.search(text) is not None
