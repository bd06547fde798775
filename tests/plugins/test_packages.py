"""Packages that are listed, gone, broken, or two of one name."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlanon.algorithms import describe_algorithms
from sqlanon.cli.commands import program
from sqlanon.errors import PolicyError
from sqlanon.methods.generalization.lattice.quality.qualities import describe_qualities
from sqlanon.models import describe_models
from sqlanon.policy.loading import parse_stored
from sqlanon.policy.schema import policy_schema
from sqlanon.policy.writer import policy_text
from sqlanon.report.queries import run_report
from sqlanon.support import plugins
from tests.cli.support import call
from tests.plugins.support import COLUMNS, DEASSOCIATION, K2, ROLES, ROWS, SORTED_RUNS, clear_caches, policy_with
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.in_turns(4)


def test_a_stored_policy_whose_package_is_gone_says_so(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.syspath_prepend(installed)
        clear_caches()
        text = policy_text(policy_with(K2, algorithm=SORTED_RUNS))
    clear_caches()
    with pytest.raises(PolicyError, match="'sorted-runs' is unknown") as raised:
        parse_stored(text)
    assert raised.value.__notes__ == [
        "The policy is a stored one: is a package that added to it not installed any more?"
    ]


@pytest.mark.either_engine
def test_the_report_of_a_run_whose_package_is_gone(
    database: Database, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.create(COLUMNS, ROWS)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(installed)
        clear_caches()
        policy = database.policy(table, ROLES, privacy=[K2, DEASSOCIATION])
        run = anonymize(policy).run
    clear_caches()
    assert "The model deassociation, which no installed package explains." in run_report(run, url=database.url)


@pytest.mark.usefixtures("example")
def test_it_is_listed_with_its_package() -> None:
    added = [
        one for one in (*describe_models(), *describe_algorithms(), *describe_qualities()) if one.package != "sqlanon"
    ]
    assert [(one.name, one.parameters, one.package) for one in added] == [
        ("deassociation", ["attribute", "alpha"], "sqlanon-example 0.1"),
        ("sorted-runs", ["growth"], "sqlanon-example 0.1"),
        ("widest", [], "sqlanon-example 0.1"),
    ]


@pytest.mark.usefixtures("example")
def test_the_schema_knows_it() -> None:
    schema = policy_schema()
    assert schema["properties"]["privacy"]["items"]["discriminator"]["mapping"]["deassociation"]
    assert schema["properties"]["algorithm"]["discriminator"]["mapping"]["sorted-runs"]
    assert schema["$defs"]["Hierarchy"]["properties"]["magnitude"]["properties"]["base"]["minimum"] == 2
    assert "widest" in schema["$defs"]["Optimal"]["properties"]["quality"]["enum"]


def test_a_package_that_does_not_load_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    _declare(tmp_path, "broken", "deassociation = broken:Model")
    monkeypatch.syspath_prepend(tmp_path)
    clear_caches()
    with pytest.raises(PolicyError, match=r"'deassociation' of the package broken 1.0 can't be loaded: ModuleNotFound"):
        policy_with(DEASSOCIATION)
    clear_caches()


def test_two_packages_with_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("first", "second"):
        _declare(tmp_path, package, f"deassociation = {package}:Model")
    monkeypatch.syspath_prepend(tmp_path)
    clear_caches()
    with pytest.raises(PolicyError, match=r"Two installed packages add 'deassociation' .*first 1.0 and second 1.0"):
        policy_with(DEASSOCIATION)
    clear_caches()


def test_the_programs_own_models_need_no_look_at_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "entry_points", None)  # calling it would fail
    clear_caches()
    assert policy_with(K2).privacy[0].model == "k-anonymity"


def _declare(directory: Path, package: str, entry: str, group: str = "sqlanon.guarantees") -> None:
    """Write the metadata of an installed package with one part."""
    metadata = directory / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")


@pytest.mark.usefixtures("example")
def test_a_method_brings_its_rules_and_its_section_of_the_report(database: Database) -> None:
    with pytest.raises(PolicyError, match="ranges: sorted-runs cuts no tree"):
        policy_with(K2, algorithm=SORTED_RUNS, ranges="cuts")
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES, privacy=[K2], algorithm=SORTED_RUNS)
    assert "those further down lose more" in run_report(anonymize(policy).run, policy=policy)


def test_a_package_that_does_not_load_leaves_the_help_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    _declare(tmp_path, "broken", "shaken = broken:METHOD", group="sqlanon.algorithms")
    monkeypatch.syspath_prepend(tmp_path)
    clear_caches()
    program.cache_clear()
    assert call("--help").exit_code == 0
    assert "'shaken' of the package broken 1.0 can't be loaded" in capsys.readouterr().err
    assert call("models").exit_code == 0
    clear_caches()
    program.cache_clear()
