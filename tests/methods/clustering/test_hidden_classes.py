"""Releases that do not show the classes which models judge: what commands say of them, and what they do not say."""

from __future__ import annotations

import json
import random
import re
import shlex
from pathlib import Path

import pytest

from sqlanon import load_policy
from sqlanon.errors import PolicyError
from sqlanon.verification.release import verify_release
from tests.cli.support import call, execute, only_object
from tests.random_cases import many

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

ROWS = 60
K = 10
JUDGED = "groups of source rows"


@pytest.fixture
def people(database_url: str) -> str:
    """A table of `ROWS` people with two numbers and an illness."""
    draw = random.Random(5)
    rows = ", ".join(f"({draw.gauss(40, 12)}, {draw.gauss(0, 1)}, '{draw.choice('xyz')}')" for _ in range(ROWS))
    execute(
        database_url,
        "CREATE TABLE people (age DOUBLE PRECISION, pay DOUBLE PRECISION, ill VARCHAR(1))",
        f"INSERT INTO people VALUES {rows}",
    )
    return database_url


def write(directory: Path, url: str, algorithm: str, more: str = "") -> Path:
    path = directory / f"{algorithm}.yml"
    path.write_text(
        f'source: {{url: "{url}", table: people}}\nrelease: {{table: released}}\nattributes:\n'
        "  age: {role: quasi-identifier}\n  pay: {role: quasi-identifier}\n  ill: {role: sensitive}\n"
        f"privacy: [{{model: k-anonymity, k: {K}}}]\nalgorithm: {{name: {algorithm}}}\n{more}",
        encoding="utf-8",
    )
    return path


def suggested(text: str) -> list[list[str]]:
    """The commands after `Next:`, without what they do."""
    _, _, commands = text.partition("Next:\n")
    return [shlex.split(line.strip().split("  ")[0])[1:] for line in commands.strip().splitlines()]


SAME = "republish: same-recoding\n"
SUGGESTING = [  # first what has every suggestion
    *(("mondrian", SAME), ("microaggregation", ""), ("r-gather", SAME), ("condensation", "")),
    *(("mondrian", ""), ("microaggregation", SAME), ("r-gather", ""), ("condensation", SAME)),
]


@pytest.mark.parametrize(("algorithm", "more"), SUGGESTING[: many(4)])
def test_a_run_suggests_only_commands_that_work(
    people: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str, more: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = call("run", write(tmp_path, people, algorithm, more), "-q")
    assert ran.exit_code == 0, ran.output
    commands = suggested(ran.stdout)
    assert len(commands) >= 2
    for command in commands:
        result = call(*command)
        assert result.exit_code == 0, (command, result.output)


def test_a_run_says_that_models_hold_for_groups(people: str, tmp_path: Path) -> None:
    policy = write(tmp_path, people, "condensation")
    told = call("run", policy, "-q").stdout
    (groups,) = re.findall(rf"Groups of source rows: (\d+); rows in a group: least {K}", told)
    assert f"Models are judged on {JUDGED}, which readers do not see" in told
    assert "worst group" in told
    for misleading in ("Equivalence classes", "worst class", "risk to be picked", "rows alone", "discernibility"):
        assert misleading not in told

    result = only_object(call("run", policy, "-q", "--replace", "--json").stdout)
    assert result["release"]["judged"] == JUDGED
    assert "risk" not in result
    shown = call("show", result["run"], "--policy", policy).stdout
    assert f"{ROWS} rows in {groups} {JUDGED} of {K} rows or more" in shown


def test_a_release_that_shows_its_classes_says_nothing_else(people: str, tmp_path: Path) -> None:
    policy = write(tmp_path, people, "microaggregation")
    assert "Verified independently on the release:" in call("run", policy, "-q").stdout
    result = only_object(call("run", policy, "-q", "--replace", "--json").stdout)
    assert "judged" not in result["release"]
    assert result["risk"]["prosecutor_max"] == 1 / K


def test_the_report_says_that_models_hold_for_groups(people: str, tmp_path: Path) -> None:
    policy = write(tmp_path, people, "condensation")
    run = only_object(call("run", policy, "-q", "--json").stdout)["run"]
    page = call("report", run, "--policy", policy).stdout
    assert f"Models are judged on {JUDGED}" in page
    assert "Worst group" in page
    assert "Readers see no classes" in page
    assert "numbers drawn at random" in page
    for misleading in ("classes are the groups of equal values", "Worst class", "Prosecutor", "ranges or sets of"):
        assert misleading not in page


def test_verify_skips_models_and_makes_the_other_checks(people: str, tmp_path: Path) -> None:
    policy = write(tmp_path, people, "condensation")
    assert call("run", policy, "-q").exit_code == 0
    found = call("verify", policy)
    assert found.exit_code == 0, found.output
    assert f"can't be judged by the models: the models judge {JUDGED}" in found.stdout
    assert "violated" not in found.stdout
    assert "kept columns hold the source's values: yes" in found.stdout
    audited = only_object(call("verify", policy, "--json").stdout)
    assert (audited["satisfied"], "models" in audited, JUDGED in audited["note"]) == (True, False, True)

    execute(people, "UPDATE released SET ill = 'x'")
    altered = call("verify", policy)
    assert altered.exit_code == 3, altered.output
    assert "kept columns hold the source's values: NO" in altered.stdout


def test_a_record_is_held_against_the_release_without_its_models(people: str, tmp_path: Path) -> None:
    policy, file = write(tmp_path, people, "condensation", "digest: run\n"), tmp_path / "record.json"
    run = only_object(call("run", policy, "-q", "--json").stdout)["run"]
    assert call("record", run, "--policy", policy, "-o", file).exit_code == 0
    record = json.loads(file.read_text(encoding="utf-8"))
    assert (record["release"]["judged"], record["verification"]["risk"]) == (JUDGED, None)
    found = call("verify", "--record", file)
    assert found.exit_code == 0, found.output
    assert "as it was recorded" in found.stdout
    assert f"can't be judged by the models: the models judge {JUDGED}" in found.stdout

    execute(people, "UPDATE released SET pay = pay + 1")
    altered = only_object(call("verify", "--record", file, "--json").stdout)
    assert (altered["unchanged"], altered["satisfied"], altered["models"]) == (False, False, None)


def test_models_of_a_release_that_hides_its_classes_are_refused(people: str, tmp_path: Path) -> None:
    policy = write(tmp_path, people, "condensation")
    assert call("run", policy, "-q").exit_code == 0
    with pytest.raises(PolicyError, match="can't be judged by the models"):
        verify_release(load_policy(policy))


def test_a_record_of_clusters_is_held_against_both_tables(people: str, tmp_path: Path) -> None:
    policy, file = write(tmp_path, people, "r-gather", "digest: run\n"), tmp_path / "record.json"
    run = only_object(call("run", policy, "-q", "--json").stdout)["run"]
    assert call("record", run, "--policy", policy, "-o", file).exit_code == 0
    found = call("verify", "--record", file)
    assert found.exit_code == 0, found.output
    assert "holds" in found.output
    execute(people, "UPDATE released_values SET value = 'x'")
    altered = call("verify", "--record", file)
    assert altered.exit_code == 3, altered.output
    assert '"released_values" has ' in altered.output
