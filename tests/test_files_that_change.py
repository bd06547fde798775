"""Files that change while a run goes on are a conflict, which says what changed, and nothing is published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlanon.errors import ConflictError, EngineError
from sqlanon.methods.generalization.full_domain import FullDomainGeneralization
from sqlanon.policy.loading import build_policy
from sqlanon.runs import search_source
from sqlanon.runs.tradeoffs.sweeping import sweep
from sqlanon.work.journal import Silent
from tests.run_support import OPTIONS, Database, anonymize

LINES = "".join(f"{job};{group};*\n" for job, group in zip("abcd", "xxyy", strict=True))
CHANGES: dict[str, Callable[[Path], Any]] = {
    "other labels": lambda file: file.write_text(LINES.replace("x", "z")),
    "no lines": lambda file: file.write_text(""),
    "gone": lambda file: file.unlink(),
}


@pytest.mark.either_engine
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("step", ["encode", "search", "release"])
def test_the_file_of_a_hierarchy(
    database: Database, step: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(LINES)
    table = database.create({"job": "VARCHAR(1)", "id": "INTEGER"}, [("abcd"[n % 4], n) for n in range(12)])
    roles = {"job": {"role": "quasi-identifier", "hierarchy": {"csv": str(file)}}, "id": "insensitive"}
    policy = database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 6}], algorithm={"name": "optimal"})
    anonymize(policy)
    released = database.sql(f"SELECT * FROM {table}_r")
    owner = search_source.Search if step == "encode" else FullDomainGeneralization
    wanted = getattr(owner, step)

    def changing(*arguments: Any) -> Any:
        result = wanted(*arguments)
        CHANGES[change](file)
        return result

    monkeypatch.setattr(owner, step, changing)
    with pytest.raises(ConflictError, match=r"jobs\.csv', the hierarchy of column 'job', changed .* nothing was pub"):
        anonymize(policy, replace=True)
    assert database.sql(f"SELECT * FROM {table}_r") == released
    assert database.leftovers() == []


class Changing(Silent):
    """An observer that changes a file as a phase begins, and keeps which phases it was told."""

    def __init__(self, at: str, file: Path) -> None:
        self.at, self.file = at, file
        self.phases: list[str] = []

    def phase(self, name: str) -> None:
        self.phases.append(name)
        if name == self.at:
            CHANGES["other labels"](self.file)


@pytest.mark.either_engine
def test_the_file_of_a_hierarchy_in_a_sweep(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(LINES)
    table = database.create({"job": "VARCHAR(1)", "id": "INTEGER"}, [("abcd"[n % 4], n) for n in range(12)])
    roles = {"job": {"role": "quasi-identifier", "hierarchy": {"csv": str(file)}}, "id": "insensitive"}
    policy = database.policy(table, roles, algorithm={"name": "optimal"})
    unchanged = Changing("none", file)
    sweep(policy, [6], options=OPTIONS, observer=unchanged)
    assert unchanged.phases == ["plan", "encode", "search", "recode"], "each is told once"
    with pytest.raises(ConflictError, match=r"jobs\.csv', the hierarchy of column 'job', changed"):
        sweep(policy, [6], options=OPTIONS, observer=Changing("search", file))


@pytest.mark.parametrize("fails", [False, True])
def test_the_file_of_the_source(fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conflict too where reading it fails because of the change."""
    file, release = tmp_path / "people.csv", tmp_path / "released.csv"
    file.write_text("n,id\n" + "".join(f"{row % 3},{row}\n" for row in range(12)))
    roles = {"n": {"role": "quasi-identifier"}, "id": {"role": "insensitive"}}
    policy = build_policy(
        {
            "source": {"file": str(file)},
            "release": {"file": str(release)},
            "attributes": roles,
            "privacy": [{"model": "k-anonymity", "k": 2}],
            "catalog": {"url": f"duckdb:///{tmp_path / 'catalog.duckdb'}"},
        }
    )
    encode = search_source.Search.encode

    def changing(*arguments: Any) -> Any:
        encoded = encode(*arguments)
        file.write_text("n,id\n1,1\n")
        if fails:
            raise EngineError("The database read half of it.")
        return encoded

    monkeypatch.setattr(search_source.Search, "encode", changing)
    with pytest.raises(ConflictError, match=r"people\.csv changed while it was read; nothing was published"):
        anonymize(policy)
    assert not release.exists()
