"""Tests that ask for a method which was removed on purpose (SQLANON_WITHOUT; see `tests.without_method`)."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon.policy.registry import Registry

METHOD = os.environ.get("SQLANON_WITHOUT", "")
_NAME = re.compile(r'"([a-z]+(?:-[a-z]+)*)": "')
_LEFT_OUT = "asks for the method {}, which is not there"


def names_of_method() -> frozenset[str]:
    """Read the names that the removed method gave to policies, from what git keeps of it."""
    path = f"sqlanon/methods/{METHOD}/__init__.py"
    text = subprocess.run(
        ["git", "show", f"HEAD:{path}"], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    return frozenset(_NAME.findall(text.stdout))


class MissingMethod:
    """Leaves out the tests that ask for the method, and fails all others as usual."""

    def __init__(self) -> None:
        self._names = names_of_method()
        self._is_asked = False
        self._module = re.compile(rf"(sqlanon|tests)[./]methods[./]{METHOD}\b")
        self._unknown = re.compile("|".join(f"'{name}' is unknown|algorithm '{name}'" for name in self._names))
        find = Registry.parameters_of

        def noted(registry: Registry[Any], name: Any) -> Any:
            found = find(registry, name)
            self._is_asked |= found is None and name in self._names
            return found

        Registry.parameters_of = noted  # type: ignore[method-assign]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        report: Any = yield
        if report.failed and self._asks(str(report.longrepr)):
            report.outcome, report.wasxfail = "skipped", _LEFT_OUT.format(METHOD)
        if call.when == "teardown":
            self._is_asked = False
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        report: Any = yield
        if report.failed and self._asks(str(report.longrepr)):
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 0, _LEFT_OUT.format(METHOD))
        return report

    def _asks(self, text: str) -> bool:
        return self._is_asked or bool(self._module.search(text) or self._unknown.search(text))
