"""A real browser without a window, for pages that people open."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser() -> str | None:
    """The browser's program: of the environment, or of the system."""
    named = os.environ.get("SQLANON_TEST_BROWSER")
    return named or next((found for found in map(shutil.which, NAMES) if found), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser of the module; without one the tests are skipped, unless they are required."""
    program = find_browser()
    if program is None:
        reason = "no browser: install chromium, or set SQLANON_TEST_BROWSER"
        if os.environ.get("SQLANON_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # as root, as in containers, Chromium starts without its sandbox only; the pages are our own
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()
