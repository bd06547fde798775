"""The built wheel holds everything, and does the main job in an environment and a directory of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
POLICY = """\
source:  {file: people.csv}
release: {file: people_released.parquet}
attributes:
  id:      {role: identifier}
  age:     {role: quasi-identifier}
  zip:     {role: quasi-identifier, hierarchy: {mask: right}}
  disease: {role: sensitive}
privacy:
  - {model: k-anonymity, k: 4}
  - {model: distinct-l-diversity, attribute: disease, l: 2}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree with the build tools that are installed."""
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    directory = tmp_path_factory.mktemp("wheel")
    _run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", directory, ROOT], ROOT)
    (built,) = directory.glob("*.whl")
    return built


def test_templates_migrations_and_licence_are_in_the_wheel(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for directory, pattern in (("sql_templates", "*.j2"), ("migrations", "*.py")):
        there = {f"sqlanon/{path.relative_to(ROOT)}" for path in (ROOT / directory).rglob(pattern)}
        assert there
        assert there <= names
    assert "sqlanon/migrations/script.py.mako" in names
    files = [path for path in (ROOT / "sqlanon").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {str(path.relative_to(ROOT)) for path in files} <= names  # stubs, pages, styles and scripts among them
    assert "sqlanon/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "docs/")) for name in names)


def test_the_installed_wheel_does_the_main_job(wheel: Path, tmp_path: Path) -> None:
    program = _installed(wheel, tmp_path / "environment")
    place = tmp_path / "elsewhere"
    place.mkdir()
    lines = "".join(f"{i},{20 + i * 7 % 40},{10000 + i * 13 % 50},{'abcd'[i % 4]}\n" for i in range(200))
    (place / "people.csv").write_text("id,age,zip,disease\n" + lines)
    (place / "policy.yml").write_text(POLICY)
    outcome = json.loads(_run([program, "run", "policy.yml", "--json"], place))
    assert outcome["verified"]
    assert outcome["release"]["rows"] == 200
    assert (place / "people_released.parquet").is_file()
    assert json.loads(_run([program, "verify", "policy.yml", "--json"], place))["satisfied"]
    assert outcome["run"] in _run([program, "runs", "--policy", "policy.yml"], place)


def _installed(wheel: Path, environment: Path) -> Path:
    """The program in an environment that sees the dependencies of the tests' environment, but not this tree."""
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    _run(install, environment)
    where = _run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], environment).strip()
    (Path(where) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    found = _run([python, "-c", "import sqlanon; print(sqlanon.__file__)"], environment).strip()
    assert Path(found).is_relative_to(environment)
    return environment / "bin" / "sqlanon"


def _run(command: Sequence[object], directory: Path) -> str:
    """Run a command outside of this tree; its stdout."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SQLANON_URL")}
    done = subprocess.run([str(part) for part in command], cwd=directory, env=kept, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
