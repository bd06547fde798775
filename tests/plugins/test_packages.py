"""Packages that are listed, gone, broken, or two of one name."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlanon import __version__
from sqlanon.algorithms import describe_algorithms
from sqlanon.cli.commands import program
from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.methods.generalization.lattice.quality.qualities import describe_qualities
from sqlanon.models import describe_models
from sqlanon.policy.loading import parse_stored
from sqlanon.policy.schema import ONE_TABLE, policy_schema
from sqlanon.policy.writer import policy_text
from sqlanon.report.queries import run_report
from sqlanon.results.records import read_record
from sqlanon.support import plugins
from tests.cli.support import call, call_main
from tests.plugins.support import COLUMNS, DEASSOCIATION, K2, ROLES, ROWS, SORTED_RUNS, clear_caches, policy_with
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.slow


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
    one = schema["$defs"][ONE_TABLE]["properties"]
    assert one["privacy"]["items"]["discriminator"]["mapping"]["deassociation"]
    assert one["algorithm"]["discriminator"]["mapping"]["sorted-runs"]
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


SHAKEN = "shaken = broken:METHOD"
WELL = (
    "from sqlanon.support.methods import Method\n"
    "METHOD = Method(__name__, place=1, algorithms={'good': 'policy:Good'}, commands={'command': ('well',)})\n"
)
COMMAND = (
    "def register(app):\n"
    "    @app.command('well')\n"
    "    def well() -> None:\n"
    "        'Say so.'\n"
    "        print('all is well')\n"
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory of installed packages."""
    monkeypatch.syspath_prepend(tmp_path)
    clear_caches()
    program.cache_clear()
    yield tmp_path
    for name in ("broken", "well", "again"):
        for module in [one for one in sys.modules if one.partition(".")[0] == name]:
            del sys.modules[module]
    clear_caches()
    program.cache_clear()


def _write(site: Path, package: str, entry: str, **modules: str) -> None:
    """Install a package that adds an algorithm; `modules` are its texts, `init` that of the package itself."""
    _declare(site, package, entry, group="sqlanon.algorithms")
    (site / package).mkdir()
    for name, text in modules.items():
        (site / package / f"{'__init__' if name == 'init' else name}.py").write_text(text)


def test_a_package_that_does_not_load_leaves_help_and_commands_of_others(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(site, "broken", SHAKEN, init="import no_such_module\n")
    _write(site, "well", "good = well:METHOD", init=WELL, command=COMMAND)
    help_text = call("--help")
    assert help_text.exit_code == 0
    assert "Say so." in help_text.stdout
    assert "'shaken' of the package broken 1.0 can't be loaded" in capsys.readouterr().err
    assert call("well").stdout == "all is well\n"
    assert call("models").exit_code == 0


@pytest.mark.parametrize(
    ("names", "command", "told"),
    [
        ("('odd',)", "raise RuntimeError('not today')\n", "RuntimeError: not today"),
        ("('odd',)", "", "no attribute 'register'"),
        ("('odd',)", "def register(app):\n    raise ValueError('no app')\n", "are left out: no app"),
        ("('run',)", "def register(app): pass\n", "command of the package broken adds 'run', which is there already"),
        ("('lattice', 'odd')", "def register(app): pass\n", "adds 'lattice', which is there already"),
    ],
    ids=["raises", "lacks", "refuses", "own", "own of a method"],
)
def test_commands_that_do_not_load_or_are_there_already_are_left_out(
    site: Path, capsys: pytest.CaptureFixture[str], names: str, command: str, told: str
) -> None:
    init = WELL.replace("'good': 'policy:Good'", "'shaken': 'policy:Shaken'").replace("('well',)", names)
    _write(site, "broken", SHAKEN, init=init, command=command)
    assert call("--help").exit_code == 0
    assert told in capsys.readouterr().err


def test_a_version_loads_no_package(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(site, "broken", SHAKEN, init="import no_such_module\n")
    assert call_main(capsys, "--version") == (0, f"sqlanon {__version__}\n", "")


@pytest.mark.parametrize(
    ("algorithms", "policy", "told"),
    [
        ("{}", "", "The package broken adds 'shaken', and its METHOD does not say where it is."),
        ("{'shaken': 'policy:Shaken'}", "", "policy:Shaken of the package broken can't be loaded: AttributeError"),
        ("{'shaken': 'policy:Shaken'}", "1 / 0", "policy:Shaken of the package broken can't be loaded: ZeroDivision"),
        ("{'shaken': 'policy:Shaken'}", "Shaken = 5", "policy:Shaken of the package broken is no AlgorithmParameters."),
        ("{'shaken': 'policy:Shaken'}", "class Shaken: pass", "is no AlgorithmParameters."),
    ],
    ids=["not in the table", "not there", "raises", "no class", "another class"],
)
def test_a_method_whose_parts_do_not_load_is_named(site: Path, algorithms: str, policy: str, told: str) -> None:
    _write(site, "broken", SHAKEN, init=WELL.replace("{'good': 'policy:Good'}", algorithms), policy=policy + "\n")
    with pytest.raises(PolicyError, match=re.escape(told)):
        policy_with(K2, algorithm={"name": "shaken"})


def test_a_record_of_a_method_that_is_gone_is_told_apart_from_one_of_a_broken_package(site: Path) -> None:
    record = '{"version": 1, "wavelets": {}}'
    with pytest.raises(SqlanonError, match=r"a method that is not installed \('wavelets'\)"):
        read_record(record)
    _write(site, "broken", SHAKEN, init="import no_such_module\n")
    clear_caches()
    with pytest.raises(PolicyError, match=r"'shaken' of the package broken 1.0 can't be loaded"):
        read_record(record)
