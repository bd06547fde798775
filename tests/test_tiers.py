"""The two tiers of tests: the fast one by default, whole modules without those marked as slow, and all, as in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def collected(*arguments: str, everything: bool = False) -> tuple[set[str], str]:
    """Collect tests in a process of its own; returns their modules and the last line."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SQLANON_TEST")}
    environment |= {"SQLANON_TEST_ALL": "1"} if everything else {}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", *arguments]
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert found.returncode in (0, 5), found.stdout + found.stderr
    return {line.partition("::")[0] for line in found.stdout.splitlines() if "::" in line}, found.stdout


def test_slow_modules_are_left_out_whole_and_the_run_says_how_many() -> None:
    fast, text = collected("tests/inquiries")
    every, _ = collected("tests/inquiries", everything=True)
    assert fast < every
    assert "slow tests were left out; SQLANON_TEST_ALL=1 runs them all." in text
    assert "SQLANON_TEST_SEED=" in text


def test_who_names_a_file_gets_its_slow_tests() -> None:
    fast, _ = collected("tests/inquiries")
    every, _ = collected("tests/inquiries", everything=True)
    named = min(every - fast)
    assert collected(named)[0] == {named}


def test_only_whole_modules_are_slow() -> None:
    """So that a module's tests can be read as one: what the fast tier has of it is all of it."""
    marking = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.startswith("@pytest.mark.slow")
    ]
    assert marking == []


def test_what_a_change_must_pass_is_every_test() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert lines.index("export SQLANON_TEST_ALL=1") < lines.index("make test")


@pytest.mark.parametrize("number", ["7", "123456"])
def test_a_run_draws_by_the_number_that_it_is_given(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.random_cases import draw_seed, seed

    monkeypatch.setenv("SQLANON_TEST_SEED", number)
    draw_seed()
    assert seed() == int(number)
