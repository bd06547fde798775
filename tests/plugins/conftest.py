"""The example as an installed package of the tests that ask for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.support import EXAMPLE, clear_caches


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that the example is installed in, as pip installs what was built from its sources."""
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    directory = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(directory)]
    command = [sys.executable, "-m", "pip", "install", *options, str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return directory


@pytest.fixture
def example(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example as an installed package of this process, which it is no more afterwards."""
    monkeypatch.syspath_prepend(installed)
    clear_caches()
    yield
    clear_caches()
