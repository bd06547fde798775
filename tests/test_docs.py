"""The documentation is true: generated pages are current, commands have help, links lead somewhere, examples run."""

from __future__ import annotations

import functools
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sqlanon
from sqlanon import check_policy, load_policy, parse_policy, run
from sqlanon.cli.commands import program
from sqlanon.cli.reference import PAGES, commands, page
from tests.cli.support import execute, make_patients, write_policy
from tests.missing_method import MISSING

ROOT = Path(__file__).parents[1]
PAGES_WRITTEN = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = dict(commands(program(), "sqlanon"))


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.skipif(bool(MISSING), reason="the pages tell of all methods")
def test_generated_pages_are_current(name: str) -> None:
    written = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert written == page(name), "run: python -m sqlanon.cli.reference"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_every_parameter_too(name: str) -> None:
    function = COMMANDS[name]
    assert inspect.getdoc(function)
    for part in inspect.signature(function).parameters.values():
        assert part.annotation.__metadata__[0].help, f"{name}: {part.name}"


def test_the_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme[readme.index("## Commands") :]
    for name in COMMANDS:
        *group, last = name.removeprefix("sqlanon ").split()
        assert f"`sqlanon {' '.join([*group, last])}" in table or (group and group[0] in table and f"`{last}`" in table)


@pytest.mark.parametrize("path", PAGES_WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", path.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        place = path.parent / target if target else path
        assert place.exists(), target
        if anchor and place.suffix == ".md":
            assert anchor in _anchors(place), f"{target}#{anchor}"


@functools.cache
def _anchors(path: Path) -> frozenset[str]:
    """The names by which links lead to the headings of a page, as its readers' programs make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", one) for one in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return frozenset(re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings)


def _blocks(language: str, page: str = "README.md") -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_guides_use_commands_and_options_that_are_there() -> None:
    lines = [line for block in _blocks("sh anonymizer", "docs/guide-dba.md") for line in block.splitlines()]
    called = [line.partition("#")[0].split() for line in lines if line.startswith("sqlanon ")]
    assert len(called) > 10
    for words in called:
        name = next(name for name in (" ".join(words[:n]) for n in (3, 2)) if name in COMMANDS)
        options = {word for word in words if word.startswith("--")}
        known = {f"--{part.replace('_', '-')}" for part in inspect.signature(COMMANDS[name]).parameters}
        assert options <= known | {"--json"}, words


def test_the_policy_of_the_dbas_guide_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLANON_URL", "postgresql://anonymizer@/clinic")
    (text,) = [block for block in _blocks("sh anonymizer", "docs/guide-dba.md") if "END" in block]
    policy = parse_policy(text.partition("END'\n")[2].partition("END\n")[0])
    assert (len(policy.attributes), len(policy.privacy), policy.republish) == (10, 2, "same-recoding")


def test_the_policy_of_the_readme_fits_its_table(tmp_path: Path) -> None:
    (block,) = _blocks("yaml")
    url = f"duckdb:///{tmp_path / 'hospital.duckdb'}"
    columns = "ssn TEXT, age INTEGER, zipcode TEXT, admitted DATE, income DOUBLE, job TEXT, disease TEXT, ward INTEGER"
    columns += ", notes TEXT"
    rows = "SELECT i, i, i, DATE '2024-01-01', i, 'nurse', i % 4, i, '' FROM range(20) t(i)"
    execute(url, f"CREATE TABLE patients ({columns})", f"INSERT INTO patients {rows}")
    (tmp_path / "job.csv").write_text("nurse;*\n")
    plan = check_policy(parse_policy(block.replace("duckdb:///hospital.duckdb", url), tmp_path))
    assert plan.rows == 20
    assert (plan.identifiers, plan.omitted) == (("ssn",), ("notes",))


def test_the_program_of_the_readme_uses_names_that_are_there() -> None:
    short, block = _blocks("python")
    compile(short, "README.md", "exec")
    compile(block, "README.md", "exec")
    (line,) = re.findall(r"from sqlanon import (.*)", block)
    for name in line.split(", "):
        assert name in sqlanon.__all__
        assert getattr(sqlanon, name)


def test_importing_the_package_loads_no_driver() -> None:
    program = "import sqlanon, sys; sys.exit('duckdb' in sys.modules or 'sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_everything_public_can_be_imported() -> None:
    for name in sqlanon.__all__:
        assert getattr(sqlanon, name) is not None
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = sqlanon.nonesuch


def test_the_guide_names_every_key_and_check_of_a_run(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path / 'one.duckdb'}"
    make_patients(url)
    outcome = run(load_policy(write_policy(tmp_path, url))).as_json()
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    for name in [*outcome, *outcome["checks"], *outcome["metrics"], *outcome["risk"], *outcome["models"][0]]:
        assert f"`{name}`" in guide, name
