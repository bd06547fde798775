"""Releases of one source by different rules: told or refused, whichever policy asked for one recoding only."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from sqlanon.catalog import Catalog, Released, releases
from sqlanon.catalog.sources import identify_source
from sqlanon.engines import connect
from sqlanon.errors import ConflictError, PolicyError
from sqlanon.policy.loading import build_policy
from sqlanon.runs.linking import check_earlier_releases, check_run, linked_warning, private_warning
from sqlanon.sql import Relation
from sqlanon.work.journal import Silent
from tests.jobs_support import COLUMNS, ROLES, K, carry_out, frozen, linked, released, simple, table
from tests.rules_support import apply
from tests.run_support import Database, anonymize, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

SAME = "same-recoding"
MDAV = {"name": "microaggregation", "refine": False}
STRICTER = [{"model": "k-anonymity", "k": 5}]


def earlier(run: str, rules: str, republish: str | None = None) -> Released:
    return Released(run, rules, f"rules-1:{rules}", republish)


def test_the_second_recoding_is_the_one_that_is_judged() -> None:
    one, other = earlier("1", "1", SAME), earlier("2", "2", "allow")
    assert check_earlier_releases([], "t", SAME) is None
    assert check_earlier_releases([one], "t", SAME, "1") is None
    assert check_earlier_releases([one], "t", SAME, None, "rules-1:1") is None
    for new in ("1", "2"):
        assert "by other rules" in (check_earlier_releases([other, one], "t", SAME, new) or "")
    assert "Run 1 released t" in (check_earlier_releases([earlier("1", "1")], "t", None) or "")
    told = check_earlier_releases([one], "t", "allow")
    assert told is not None
    assert "The policy of run 1 says republish: same-recoding, this one says republish: allow" in told


@pytest.mark.parametrize("rules", [None, "3"])
@pytest.mark.parametrize("republish", [None, SAME])
def test_a_recoding_beside_one_that_is_to_be_the_only_one_is_refused(republish: str | None, rules: str | None) -> None:
    found = [earlier("3", "9"), earlier("2", "1", SAME), earlier("1", "1", SAME)]
    with pytest.raises(PolicyError, match=r"same-recoding.* forbids it") as refused:
        check_earlier_releases(found, "t", republish, rules)
    assert "as run 2 released t" in str(refused.value)
    assert "`sqlanon apply 1`" in str(refused.value)
    assert "`republish: allow`" in str(refused.value)


def test_the_same_clusters_are_no_other_rules(database: Database) -> None:
    table = database.create({"a": "INTEGER"}, [(number * number,) for number in range(20)])
    policies = [
        database.policy(table, {"a": "quasi-identifier"}, algorithm=MDAV, privacy=privacy)
        for privacy in (STRICTER, STRICTER, [{"model": "k-anonymity", "k": 4}])
    ]
    first, again, other = (anonymize(policy, replace=True) for policy in policies)
    assert linked(first.warnings) == linked(again.warnings) == []
    assert linked(other.warnings) == [linked_warning(again.run, again.source.table)]


def counted(database: Database) -> int:
    ((count,),) = database.sql("SELECT count(*) FROM sqlanon.releases")
    return int(count)


@pytest.mark.parametrize("release", ["same", "other"])
def test_an_earlier_policy_binds_later_ones(database: Database, release: str) -> None:
    name, run = simple(database, republish=SAME)
    before = released(database, f"{name}_r")
    place: dict[str, Any] = {} if release == "same" else {"release": {"table": f"{name}_other"}}
    with pytest.raises(PolicyError, match=f"in the policy of run {run}, forbids it"):
        anonymize(database.policy(name, ROLES, privacy=STRICTER, **place), replace=True)
    assert counted(database) == 1
    assert released(database, f"{name}_r") == before
    allowed = anonymize(database.policy(name, ROLES, privacy=STRICTER, republish="allow", **place), replace=True)
    assert [told for told in linked(allowed.warnings) if f"Run {run} released" in told and "republish: allow" in told]
    ((text,),) = database.sql("SELECT policy FROM sqlanon.runs WHERE id = ?", [allowed.run])
    assert json.loads(text)["republish"] == "allow"
    with pytest.raises(PolicyError, match="forbids it"):
        anonymize(database.policy(name, ROLES, privacy=[{"model": "k-anonymity", "k": 7}]), replace=True)
    frozen(database, run)
    assert carry_out(database)["published"]


def test_rules_of_another_source_are_refused_where_one_recoding_is_wanted(database: Database) -> None:
    name, _ = simple(database, republish=SAME)
    other = database.create(COLUMNS, table(2, 120, 0))
    run = anonymize(database.policy(other, ROLES, privacy=[K])).run
    with pytest.raises(PolicyError, match="forbids it"):
        apply(database, run, name, f"{name}_s")
    assert linked(apply(database, run, other, f"{other}_s").warnings) == []


def test_a_search_is_told_of_other_rules_where_nothing_forbids_it(database: Database) -> None:
    name, _ = simple(database)
    again = anonymize(database.policy(name, ROLES, privacy=[K]), replace=True)
    assert linked(again.warnings) == []
    stricter = anonymize(database.policy(name, ROLES, privacy=STRICTER), replace=True)
    assert f"Run {again.run} released" in linked(stricter.warnings)[0]


def test_a_private_release_has_no_classes_to_intersect(database: Database) -> None:
    name, run = simple(database)
    stricter = anonymize(database.policy(name, ROLES, privacy=STRICTER), replace=True).run
    counts = "UPDATE sqlanon.releases SET kind = 'counts' WHERE run = ?"  # as of a release with noise
    database.sql(counts, [stricter])
    frozen(database, run)
    again = carry_out(database)
    assert private_warning(stricter, again["source"]["table"]) in again["warnings"]
    assert linked(again["warnings"]) == []
    other = anonymize(database.policy(name, ROLES, privacy=[{"model": "k-anonymity", "k": 9}]), replace=True)
    assert linked(other.warnings) == [linked_warning(again["run"], other.source.table)]


class Meanwhile(Silent):
    """Does something when a run is about to publish."""

    def __init__(self, work: Any) -> None:
        self.work = work

    def phase(self, name: str) -> None:
        if name == "publish":
            self.work()


@pytest.mark.parametrize("first", [None, SAME])
def test_a_release_that_came_meanwhile_is_seen(database: Database, first: str | None) -> None:
    name = database.create(COLUMNS, table(1, 120, 0))
    other = database.policy(name, ROLES, privacy=STRICTER, release={"table": f"{name}_s"}, republish=SAME)
    policy = database.policy(name, ROLES, privacy=[K], **({"republish": first} if first else {}))
    with pytest.raises(PolicyError, match="forbids it"):
        anonymize(policy, observer=Meanwhile(lambda: anonymize(other)))
    assert database.sql("SELECT release FROM sqlanon.runs WHERE status = 'published'")[0][0].endswith(f'"{name}_s"')
    assert counted(database) == 1
    assert database.leftovers() == []


def test_releases_of_a_source_wait_for_each_other(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    name = database.create(COLUMNS, table(1, 120, 0))
    policy = database.policy(name, ROLES, privacy=[K])
    with connect(database.url) as engine, Catalog.open(engine) as held:
        source = str(engine.resolve(Relation(name)))
        with held.releasing(source):
            monkeypatch.setattr(releases, "_RELEASING", 0.0)
            with pytest.raises(ConflictError, match="Another run is releasing"):
                anonymize(policy)
            assert counted(database) == 0
        monkeypatch.setattr(releases, "_RELEASING", 60.0)
        with held.releasing(source):
            done = threading.Event()
            waiting = threading.Thread(target=lambda: (anonymize(policy), done.set()))
            waiting.start()
            assert not done.wait(1.0)
        waiting.join(60)
        assert done.is_set()
    assert counted(database) == 1


def _csv(directory: Path) -> Path:
    file = directory / "p.csv"
    file.write_text("n,t,s\n" + "".join(f"{n % 30},{'abcd'[n % 4]},{'xyz'[n % 3]}\n" for n in range(120)))
    return file


def _file_policy(source: str, target: str, k: int, directory: Path, **more: Any) -> Any:
    data: dict[str, Any] = {
        "source": {"file": source},
        "release": {"file": str(directory / target)},
        "catalog": {"url": f"duckdb:///{directory}/catalog.duckdb"},
        "attributes": {
            "n": {"role": "quasi-identifier"},
            "t": {"role": "quasi-identifier"},
            "s": {"role": "sensitive"},
        },
        "privacy": [{"model": "k-anonymity", "k": k}],
    }
    return build_policy(data | more)


def test_a_file_is_the_same_source_however_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = _csv(tmp_path)
    os.symlink(file, tmp_path / "link.csv")
    first = _file_policy("p.csv", "r.csv", 3, tmp_path, republish=SAME)
    assert check_run(first)[1] is None
    assert not (tmp_path / "catalog.duckdb").exists()
    anonymize(first)
    for name in ("./p.csv", str(file), "link.csv", f"../{tmp_path.name}/p.csv"):
        with pytest.raises(PolicyError, match="forbids it"):
            anonymize(_file_policy(name, "s.csv", 5, tmp_path))
        policy = _file_policy(name, "s.csv", 5, tmp_path)
        assert "forbids it" in (check_run(policy)[1] or "")
    into = {"url": f"duckdb:///{tmp_path}/into.duckdb", "table": "r"}
    with pytest.raises(PolicyError, match="forbids it"):
        anonymize(_file_policy("p.csv", "", 5, tmp_path, release=into))


def test_a_file_that_was_recorded_by_a_relative_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _csv(tmp_path)
    policy = _file_policy("p.csv", "r.csv", 3, tmp_path, republish=SAME)
    run = anonymize(policy).run
    with open_database(str(policy.catalog.url)) as recorded:
        recorded.sql("UPDATE sqlanon.runs SET source = 'p.csv' WHERE id = ?", [run])
    with pytest.raises(PolicyError, match="forbids it"):
        anonymize(_file_policy(str(tmp_path / "p.csv"), "s.csv", 5, tmp_path))


def test_a_table_is_the_same_source_by_the_link_to_its_database() -> None:
    one, other = identify_source('"a"."main"."t"', "/d/a.duckdb"), identify_source('"b"."main"."t"', "/d/a.duckdb")
    assert one == other
    assert one != identify_source('"a"."main"."t"', "/d/b.duckdb")
    assert one != identify_source('"a"."main"."u"', "/d/a.duckdb")


def test_a_column_that_came_is_left_out_if_a_policy_calls_it_an_identifier(database: Database) -> None:
    name, run = simple(database, republish=SAME)
    database.sql(f"ALTER TABLE {name} ADD COLUMN phone VARCHAR(9)")
    with pytest.raises(PolicyError, match=r"column without a role: 'phone'.*apply --policy"):
        apply(database, run, name, f"{name}_r", "error", replace=True)
    known = database.policy(name, {**ROLES, "phone": "insensitive"}, privacy=[K], republish=SAME)
    with pytest.raises(PolicyError, match="column without a role: 'phone'"):
        apply(database, run, name, f"{name}_r", "error", known, replace=True)
    known = database.policy(name, {**ROLES, "phone": "identifier"}, privacy=[K], republish=SAME)
    with pytest.raises(PolicyError, match="forbids it"):
        anonymize(known, replace=True)
    applied = apply(database, run, name, f"{name}_r", "error", known, replace=True).run
    before = released(database, f"{name}_r")
    frozen(database, applied)
    assert linked(carry_out(database)["warnings"]) == []
    assert released(database, f"{name}_r") == before
    assert "phone" not in [column for column, _ in database.columns(f"{name}_r")]
