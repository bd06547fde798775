"""explore: the page, what people and programs get, and what is refused."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.cli.support import call, full_domain_policy, only_object, write_policy

pytestmark = pytest.mark.slow


def test_the_page_is_its_owners_alone_and_people_see_the_front(patients_url: str, tmp_path: Path) -> None:
    page = tmp_path / "explore.html"
    result = call("explore", full_domain_policy(tmp_path, patients_url), "-o", page)
    assert result.exit_code == 0, result.output
    assert "48 candidates measured" in result.stdout
    assert "* has the best score" in result.stdout
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "--levels" in page.read_text(encoding="utf-8")
    assert call("explore", tmp_path / "policy.yml", "-o", tmp_path / "none" / "explore.html").exit_code == 4


def test_of_a_larger_lattice_the_best_and_those_nearest_to_it_are_measured(patients_url: str, tmp_path: Path) -> None:
    policy = full_domain_policy(tmp_path, patients_url)
    whole = only_object(call("explore", policy, "--json").stdout)
    part = only_object(call("explore", policy, "--candidates", "12", "--json").stdout)
    assert (part["nodes"], len(part["candidates"])) == (48, 12)
    best = whole["candidates"][whole["best"]]
    assert part["candidates"][0] == best
    assert part["candidates"][part["best"]] == best
    assert all(one in whole["candidates"] for one in part["candidates"])
    assert (
        only_object(call("explore", policy, "--candidates", "12", "--json").stdout)["candidates"] == part["candidates"]
    )


def test_without_hierarchies_candidates_are_runs_with_several_k(patients_url: str, tmp_path: Path) -> None:
    page = tmp_path / "explore.html"
    policy = write_policy(tmp_path, patients_url)
    found = only_object(call("explore", policy, "--k", "5,10,150", "-o", page, "--json").stdout)
    assert found["kind"] == "sweep"
    assert [one["k"] for one in found["candidates"]] == [5, 10, 150]
    risks = [one["risk"]["greatest"] for one in found["candidates"]]
    assert all(risk <= 1 / k for risk, k in zip(risks, [5, 10, 150], strict=True))
    assert sum(part[2] for part in found["candidates"][0]["sizes"]) == found["candidates"][0]["classes"]
    assert "Write k:" in page.read_text(encoding="utf-8")
    assert [one["k"] for one in only_object(call("explore", policy, "--json").stdout)["candidates"]] == [
        2,
        5,
        10,
        20,
        50,
    ]


def test_wrong_options_are_named(patients_url: str, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, patients_url)
    result = call("explore", policy, "--k", "two")
    assert (result.exit_code, "'two'" in result.output) == (2, True)
    for option in ("--candidates", "--time-limit"):  # the policy has no lattice
        refused = call("explore", policy, option, "12")
        assert refused.exit_code == 2
        assert "are of a lattice" in refused.stderr


def test_a_report_links_to_the_page(patients_url: str, tmp_path: Path) -> None:
    policy = full_domain_policy(tmp_path, patients_url)
    (tmp_path / "reports").mkdir()
    page, report = tmp_path / "the choices.html", tmp_path / "reports" / "report.html"
    run = only_object(call("run", policy, "-q", "--json").stdout)["run"]
    arguments = ("report", run, "--policy", policy, "--explore", page)
    missing = call(*arguments, "-o", report)
    assert (missing.exit_code, report.exists()) == (2, False)
    assert f"There is no file {page} to link to: `sqlanon explore POLICY -o '{page}'`" in missing.stderr
    page.write_text("<p>")
    assert call(*arguments, "-o", report).exit_code == 0
    assert '<a href="../the%20choices.html">' in report.read_text(encoding="utf-8")
    assert "trade-off between" not in call("report", run, "--policy", policy).stdout
