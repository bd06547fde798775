"""The program without one of its methods: all other tests pass, and the command runs.

python -m tests.without_method clustering           removes the method's three folders from a copy, and tests the rest
python -m tests.without_method --of-the-day -n 2     the method whose turn it is; other options are pytest's

A test that asks for what the method brings is left out (`tests.missing_method`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sqlanon.support.methods import own_methods

ROOT = Path(__file__).parent.parent
NAMES = [method.package.rpartition(".")[2] for method in own_methods()]
FOLDERS = ("sqlanon/methods", "sql_templates/methods", "tests/methods")


def main(arguments: list[str]) -> int:
    """Test the rest of the program; the exit code is pytest's, or that of the first command that fails."""
    name, *options = arguments
    if name == "--of-the-day":
        name = NAMES[int(time.time() / 86400) % len(NAMES)]
    if name not in NAMES:
        print(f"{name} is none of {', '.join(NAMES)}.", file=sys.stderr)
        return 2
    print(f"Without {name}:", flush=True)
    with tempfile.TemporaryDirectory(prefix="sqlanon-without-") as directory:
        copy = Path(directory) / "copy"
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(copy)], check=True)
        subprocess.run(["git", "rm", "-rq", *(f"{folder}/{name}" for folder in FOLDERS)], cwd=copy, check=True)
        shutil.rmtree(copy / "sqlanon/methods" / name, ignore_errors=True)
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        return _run_commands(copy, environment) or _run_tests(copy, environment, options)


def _run_commands(copy: Path, environment: dict[str, str]) -> int:
    """Print the help, and carry out the demonstration's policy by a method that is left."""
    sqlanon = [sys.executable, "-m", "sqlanon"]
    commands = [[*sqlanon, "--help"], [*sqlanon, "algorithms"]]
    for command in commands:
        code = subprocess.run(command, cwd=copy, env=environment, stdout=subprocess.DEVNULL, check=False).returncode
        if code:
            print(f"{' '.join(command[2:])} ended with {code}.", file=sys.stderr)
            return code
    return 0


def _run_tests(copy: Path, environment: dict[str, str], options: list[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *options], cwd=copy, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
