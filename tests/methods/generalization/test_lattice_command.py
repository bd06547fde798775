"""lattice, and run with levels and limits: what is printed, and the exit codes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from sqlanon.cli.levels import parse_levels
from sqlanon.errors import PolicyError
from tests.cli.support import (
    call,
    execute,
    full_domain_policy,
    only_object,
    query,
    run_program,
)
from tests.random_cases import many

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


@pytest.fixture
def lattice_policy(patients_url: str, tmp_path: Path) -> Path:
    return full_domain_policy(tmp_path, patients_url)


def _levels(found: dict[str, Any]) -> str:
    pairs = zip(found["attributes"], found["optimum"]["levels"], strict=True)
    return ",".join(f"{name}={level}" for name, level in pairs)


# --- lattice


def test_people_see_the_frontier_and_how_to_release_the_best(lattice_policy: Path) -> None:
    result = call("lattice", lattice_policy, "--all")
    assert result.exit_code == 0, result.output
    assert "48 generalizations of 3 quasi-identifiers" in result.stdout
    assert "suppression budget 10 rows (5 %)" in result.stdout
    assert re.search(r"age +zipcode +sex +suppressed +loss", result.stdout)
    (levels,) = re.findall(r"--levels (\S+)", result.stdout)
    assert call("run", lattice_policy, "--levels", levels, "-q").exit_code == 0


def test_programs_get_one_object(lattice_policy: Path) -> None:
    some, everything = (only_object(call("lattice", lattice_policy, *a, "--json").stdout) for a in ([], ["--all"]))
    assert everything["complete"]
    assert everything["all"]
    assert not some["all"]
    assert some["optimum"] == everything["optimum"]
    assert {tuple(node) for node in some["anonymous"]} <= {tuple(node) for node in everything["anonymous"]}


@pytest.mark.parametrize("algorithm", ["incognito", "samarati", "bottom-up", "datafly"])
def test_every_algorithm_can_be_watched(patients_url: str, tmp_path: Path, algorithm: str) -> None:
    found = only_object(
        call("lattice", full_domain_policy(tmp_path, patients_url, f"{{name: {algorithm}}}"), "--json").stdout
    )
    assert found["algorithm"] == algorithm
    assert found["complete"] == (algorithm in ("incognito", "bottom-up"))


def test_the_drawing_is_written(lattice_policy: Path, tmp_path: Path) -> None:
    result = call("lattice", lattice_policy, "--svg", tmp_path / "lattice.svg", "-q")
    assert result.exit_code == 0, result.output
    assert ET.parse(tmp_path / "lattice.svg").getroot().tag.endswith("svg")
    assert "Drew" in result.stderr
    refused = call("lattice", lattice_policy, "--svg", tmp_path / "none" / "lattice.svg")
    assert refused.exit_code == 4
    assert "searching" not in refused.stderr


def test_progress_is_on_stderr_unless_quiet(lattice_policy: Path) -> None:
    code, out, err = run_program("lattice", lattice_policy)
    assert code == 0
    assert "searching" in err
    assert "searching" not in out
    assert run_program("lattice", lattice_policy, "-q")[2] == ""


def test_a_lattice_too_large_stops_unless_told_otherwise(lattice_policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlanon.methods.generalization.lattice.options.LARGEST", 10)
    monkeypatch.setattr("sqlanon.methods.generalization.explore.explore_lattice.LARGEST", 10)
    refused = call("lattice", lattice_policy, "--all")
    assert refused.exit_code == 2
    assert re.search(r"The lattice has \d\d generalizations, and --all may have to look", refused.stderr)
    assert "optimal and datafly look at few" in refused.stderr
    assert call("lattice", lattice_policy, "--all", "--any-size").exit_code == 0
    assert call("lattice", lattice_policy).exit_code == 0
    assert only_object(call("lattice", lattice_policy, "--json").stdout)["concluded"] is None
    for algorithm in ("incognito", "bottom-up"):
        lattice_policy.write_text(
            re.sub(r"name: [\w-]+\}\nsup", f"name: {algorithm}}}\nsup", lattice_policy.read_text())
        )
        for command in (["run", "--replace"], ["lattice"]):
            refused = call(*command, lattice_policy)
            assert refused.exit_code == 2
            assert f"and {algorithm} may have to look" in refused.stderr
    assert call("run", lattice_policy, "--any-size", "--replace").exit_code == 0


# --- run --levels


def test_levels_are_released_and_told(lattice_policy: Path, patients_url: str) -> None:
    result = call("run", lattice_policy, "--levels", "age=3,zipcode=5,sex=0", "--json")
    assert result.exit_code == 0, result.output
    told = only_object(result.stdout)["algorithm"]
    assert told["levels"] == {"age": 3, "zipcode": 5, "sex": 0}
    assert (told["checked"], told["proven"]) == (1, False)
    assert query(patients_url, "SELECT DISTINCT age, zipcode FROM patients_released") == [("*", "*")]


def test_levels_that_violate_a_model_are_refused_and_say_which(lattice_policy: Path, patients_url: str) -> None:
    result = call("run", lattice_policy, "--levels", "age=0,zipcode=0,sex=0")
    assert result.exit_code == 3
    assert "k-anonymity (k: 5) fails for 200 rows" in result.stderr
    assert "suppression budget is 10 of 200 rows" in result.stderr
    assert "no suppression would do" in result.stderr
    assert query(
        patients_url, "SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'patients_r%'"
    ) == [(0,)]


def test_how_much_suppression_would_do_is_right(patients_url: str, tmp_path: Path) -> None:
    policy = full_domain_policy(tmp_path, patients_url, suppression="0")
    execute(patients_url, "UPDATE patients SET age = 99 WHERE ssn = 7")
    levels = ("--levels", "age=1,zipcode=5,sex=1")
    result = call("run", policy, *levels)
    assert result.exit_code == 3
    (share,) = re.findall(r"suppression: (0\.\d+) would do", result.stderr)
    assert call("run", full_domain_policy(tmp_path, patients_url, suppression=share), *levels).exit_code == 0


def test_levels_serve_a_policy_of_any_algorithm_and_are_not_called_the_best(patients_url: str, tmp_path: Path) -> None:
    policy = full_domain_policy(tmp_path, patients_url, "{name: mondrian}")
    result = call("run", policy, "--levels", "age=3,zipcode=5,sex=0")
    assert result.exit_code == 0
    assert "not proven to be the best" in result.stdout


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ("", "write NAME=LEVEL"),
        ("age", "write NAME=LEVEL"),
        ("age=", "write NAME=LEVEL"),
        ("age=x,zipcode=1,sex=0", "character 1"),
        ("age=-1,zipcode=1,sex=0", "write NAME=LEVEL"),
        ("age=1,zipcode=1,sex=", "character 17"),
        ("age=1,age=2,zipcode=1,sex=0", "'age' is there twice"),
        ("age=1,zipcode=1", "missing: 'sex'"),
        ("age=1,zip=1,sex=0", "did you mean 'zipcode'"),
        ("age=1,zipcode=1,sex=0,disease=1", "'disease' is not a quasi-identifier"),
        ("age=9,zipcode=1,sex=2", "'age' can be at levels 0 to 3, not at 9"),
    ],
)
def test_wrong_levels_end_with_2(lattice_policy: Path, levels: str, message: str) -> None:
    result = call("run", lattice_policy, "--levels", levels)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_all_wrong_levels_are_named_at_once(lattice_policy: Path) -> None:
    problems = only_object(call("run", lattice_policy, "--levels", "age=9,zipcode=9,sex=0", "--json").stdout)
    assert len(problems["error"]["problems"]) == 2


def test_names_of_levels_may_be_quoted() -> None:
    assert parse_levels(' age = 2 ,"a,b=c"=0,"say ""x"""=11') == {"age": 2, "a,b=c": 0, 'say "x"': 11}
    assert parse_levels("ärger mit=1,") == {"ärger mit": 1}
    with pytest.raises(PolicyError):
        parse_levels('"open=1')


# --- run --time-limit


def test_a_time_limit_goes_with_searches_that_can_stop(lattice_policy: Path) -> None:
    result = call("run", lattice_policy, "--time-limit", "60", "--json")
    assert only_object(result.stdout)["algorithm"]["proven"]
    both = call("run", lattice_policy, "--time-limit", "60", "--levels", "age=3,zipcode=5,sex=0", "--replace")
    assert both.exit_code == 2
    assert "nothing to search" in both.stderr


@pytest.mark.parametrize("algorithm", ["incognito", "bottom-up", "samarati", "datafly", "mondrian"])
def test_others_refuse_a_time_limit(patients_url: str, tmp_path: Path, algorithm: str) -> None:
    policy = full_domain_policy(tmp_path, patients_url, f"{{name: {algorithm}}}")
    for command in (["run"], ["run", "--dry-run"]):
        result = call(*command, policy, "--time-limit", "60")
        assert result.exit_code == 2
        assert f"--time-limit: {algorithm} has nothing to release before it is done" in result.stderr
    everything = call("lattice", policy, "--all", "--time-limit", "60")
    assert everything.exit_code == 0, everything.output


# --- the summary, and what would be sent


def test_the_summary_tells_levels_score_and_proof(lattice_policy: Path) -> None:
    text = call("run", lattice_policy).stdout
    assert re.search(r"Levels \(optimal, \d+ of 48 generalizations checked\):", text)
    assert re.search(r"\n  zipcode: \d\n", text)
    assert re.search(r"loss 0\.\d+ \(lower is better\), proven: it may choose none better; [\d.]+ % of the rows", text)


@pytest.mark.parametrize("algorithm", ["incognito", "samarati", "bottom-up", "optimal", "datafly"])
def test_the_statements_of_a_run_are_shown_without_sending_them(
    patients_url: str, tmp_path: Path, algorithm: str
) -> None:
    policy = full_domain_policy(tmp_path, patients_url, f"{{name: {algorithm}, limits: {{zipcode: [1, 5]}}}}")
    ways = (["run", "--dry-run"], ["check", "--sql"], ["run", "--dry-run", "--levels", "age=1,zipcode=1,sex=1"])
    for command in ways if algorithm == "optimal" else ways[: many(1)]:
        result = call(*command, policy)
        assert result.exit_code == 0, result.output
        assert "-- search: methods/generalization/lattice/create_" in result.stdout
        assert "-- recode: " in result.stdout
