"""A real browser without a window, for pages that people open."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
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


@pytest.fixture
def watched(browser: Any) -> Iterator[tuple[Any, list[str]]]:
    """A page, and what went wrong on it or was asked for beside it."""
    page, noted = browser.new_page(viewport={"width": 1000, "height": 900}), []
    page.on("request", lambda request: noted.append(request.url))
    page.on("requestfailed", lambda request: noted.append(f"failed {request.url}"))
    page.on("console", lambda message: noted.append(f"{message.type} {message.text}"))
    page.on("pageerror", lambda error: noted.append(str(error)))
    yield page, noted
    page.close()


@pytest.fixture
def opened(watched: tuple[Any, list[str]], file: Path) -> tuple[Any, list[str]]:
    """The page of the module's fixture `file`, opened from it."""
    watched[0].goto(file.as_uri())
    return watched
