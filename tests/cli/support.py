"""The command under test, as a process and inside this one, and the tables it works on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from sqlanon.cli.commands import program
from sqlanon.cli.program import main
from sqlanon.engines import connect
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.sql import Statement

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-c", "from sqlanon.cli import main; main()"]

PATIENTS = """
CREATE TABLE patients AS
SELECT
    i AS ssn,
    20 + (i * 7) % 40 AS age,
    CAST(10000 + (i * 13) % 90 AS VARCHAR(5)) AS zipcode,
    CASE i % 2 WHEN 0 THEN 'F' ELSE 'M' END AS sex,
    CASE (i / 3) % 4 WHEN 0 THEN 'flu' WHEN 1 THEN 'cold' WHEN 2 THEN 'asthma' ELSE 'none' END AS disease,
    i % 5 AS ward
FROM {series}
"""

POLICY = """\
source:  {{url: "{url}", table: patients}}
release: {{table: patients_released}}
attributes:
  ssn:     {{role: identifier}}
  age:     {{role: quasi-identifier}}
  zipcode: {{role: quasi-identifier, hierarchy: {{mask: right}}}}
  sex:     {{role: quasi-identifier}}
  disease: {{role: sensitive}}
  ward:    {{role: insensitive}}
privacy:
  - {{model: k-anonymity, k: 5}}
  - {{model: distinct-l-diversity, attribute: disease, l: 2}}
"""


def execute(url: str, *statements: str) -> None:
    """Run statements in a database."""
    with connect(url, EngineOptions(places=None), create=url.startswith("duckdb")) as engine:
        for text in statements:
            engine.execute(Statement("test", text))


def query(url: str, text: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with connect(url) as engine:
        return engine.fetch(Statement("test", text))


def make_patients(url: str, rows: int = 200) -> None:
    """The table `patients`: 200 made-up rows, or so many."""
    series = f"range({rows}) AS t(i)" if url.startswith("duckdb") else f"generate_series(0, {rows - 1}) AS t(i)"
    execute(url, PATIENTS.format(series=series).replace("(i / 3)", "(i // 3)" if "range(" in series else "(i / 3)"))


def write_policy(directory: Path, url: str, **replaced: str) -> Path:
    """The policy for `patients`; each keyword's value replaces the text that is the key in `REPLACEABLE`."""
    text = POLICY.format(url=url)
    for name, value in replaced.items():
        before = REPLACEABLE[name]
        assert before in text
        text = text.replace(before, value)
    path = directory / "policy.yml"
    path.write_text(text, encoding="utf-8")
    return path


REPLACEABLE = {
    "source": "table: patients}",
    "release": "{table: patients_released}",
    "age": "age:     {role: quasi-identifier}",
    "ward": "  ward:    {role: insensitive}\n",
    "k": "k: 5",
    "l": "l: 2",
    "diversity": "{model: distinct-l-diversity, attribute: disease, l: 2}",
}


def call(*arguments: object, environment: dict[str, str] | None = None) -> Result:
    """Call the program inside this process; of its commands only those are built that it would build."""
    given = [str(argument) for argument in arguments]
    return CliRunner().invoke(program(given[0] if given else None), given, env=environment)


def call_main(
    capture: pytest.CaptureFixture[str], *arguments: object, environment: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Call all of the program inside this process, what it makes of a wrong command line and of signals included."""
    heeded = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    capture.readouterr()
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (environment or {}).items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main([str(argument) for argument in arguments])
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)
    return (int(ended.value.code or 0), *capture.readouterr())


def spawn(
    *arguments: object, environment: dict[str, str] | None = None, stderr: int = subprocess.PIPE
) -> subprocess.Popen[str]:
    """Start the program as a process of its own."""
    return subprocess.Popen(
        [*PROGRAM, *(str(argument) for argument in arguments)],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        preexec_fn=_heed_signals,
    )


def _heed_signals() -> None:
    """A signal that the test run ignores (nohup, a background job) would stay ignored in what it starts."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit code, stdout and stderr."""
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def run_program(*arguments: object, environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run the program to its end."""
    return finish(spawn(*arguments, environment=environment))


def only_object(text: str) -> dict[str, Any]:
    """Parse a command's output, which must be one JSON object."""
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def keys_of(value: dict[str, Any], *path: str) -> Sequence[str]:
    """The keys of the object at `path`."""
    for part in path:
        value = value[part]
    return list(value)


_AGE_IN_TENS = "age:     {role: quasi-identifier, hierarchy: {intervals: [10, 20]}}"
_SEX_OR_NOTHING = "sex:     {role: quasi-identifier, hierarchy: suppress}"


def full_domain_policy(
    directory: Path, url: str, algorithm: str = "{name: optimal}", suppression: str = "0.05"
) -> Path:
    """A policy of `patients` whose attributes all have hierarchies, in a file."""
    policy = write_policy(directory, url, age=_AGE_IN_TENS)
    text = policy.read_text().replace("sex:     {role: quasi-identifier}", _SEX_OR_NOTHING)
    policy.write_text(f"{text}algorithm: {algorithm}\nsuppression: {suppression}\n")
    return policy
