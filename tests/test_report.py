"""Reports: what a run recorded, as one page, from the catalog alone; without a value of the data or a secret."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sqlanon import explore, run_report
from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.policy import Policy
from sqlanon.report.drawing.tree import DrawnNode
from sqlanon.report.material import Material, collect
from sqlanon.report.number_text import percent, share_above
from sqlanon.report.page import render
from sqlanon.results.measures import SizeBucket
from sqlanon.results.records import read_record
from sqlanon.results.run_result import RunResult
from sqlanon.work.session import catalog_place, open_recorded
from tests.cli.support import call
from tests.run_support import OPTIONS, Database, anonymize, open_database

pytestmark = pytest.mark.either_engine

CANARY = "Xq7Canary"
COLUMNS = {"age": "INTEGER", "job": "VARCHAR(20)", "zip": "VARCHAR(6)", "sex": "VARCHAR(1)", "disease": "VARCHAR(20)"}
JOBS = [f"{CANARY}{n}" for n in range(4)]
ROWS = [
    (86_420_900 + i * 7 % 40, JOBS[i * 3 % 4], str(10_000 + i * 13 % 37), "fm"[i % 2], f"{CANARY}d{i // 3 % 5}")
    for i in range(120)
]
PLAIN: dict[str, Any] = dict.fromkeys(("age", "job", "zip", "sex"), "quasi-identifier") | {"disease": "sensitive"}
LEVELED = PLAIN | {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
    "job": {
        "role": "quasi-identifier",
        "hierarchy": {"mapping": {job: f"group {n % 2}" for n, job in enumerate(JOBS)}},
    },
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
}
PRIVACY = [
    {"model": "k-anonymity", "k": 4},
    {"model": "distinct-l-diversity", "attribute": "disease", "l": 2},
]
IMPOSSIBLE = [{"model": "recursive-l-diversity", "attribute": "disease", "c": 0.001, "l": 2}]
ALGORITHMS: dict[str, dict[str, Any]] = {
    "mondrian": {"attributes": PLAIN},
    "optimal": {"attributes": LEVELED, "suppression": 0.1},
    "incognito": {"attributes": LEVELED, "suppression": 0.1, "suppressed": "star", "remainder": "recode"},
    "top-down": {"attributes": LEVELED},
}


def made(database: Database, algorithm: str, **more: Any) -> Policy:
    """A table with canaries in it, and a policy for it."""
    given = dict(ALGORITHMS[algorithm])
    table = database.create(COLUMNS, ROWS)
    attributes = given.pop("attributes")
    return database.policy(table, attributes, **({"privacy": PRIVACY, "algorithm": {"name": algorithm}} | given | more))


def material(policy: Policy, run: str) -> Material:
    with open_recorded(catalog_place(policy)) as catalog:
        return collect(catalog, run)


def check_columns(database: Database, policy: Policy, outcome: RunResult) -> None:
    """Check the values and labels of each column against the tables, and the losses against the run's."""
    shown = {one.name: one for one in (outcome.quasi_identifiers or ())}
    assert list(shown) == ["age", "job", "zip", "sex"]
    for name, one in shown.items():
        (values,) = database.sql(f"SELECT count(DISTINCT {name}) FROM {policy.source.table}")[0]
        where = (
            "" if policy.suppressed == "omit" else " WHERE NOT (age = '*' AND job = '*' AND zip = '*' AND sex = '*')"
        )
        (labels,) = database.sql(f"SELECT count(DISTINCT {name}) FROM {policy.release.table}{where}")[0]
        assert (one.values, one.labels) == (values, labels), name
    losses = [one.loss for one in shown.values() if one.loss is not None]
    assert sum(losses) / 4 == pytest.approx(outcome.metrics.gcp, abs=1e-8)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_report_is_made_from_the_catalog_alone_and_holds_no_value(database: Database, algorithm: str) -> None:
    policy = made(database, algorithm)
    outcome = anonymize(policy)
    check_columns(database, policy, outcome)
    database.sql(f"DROP TABLE {policy.source.table}")
    database.sql(f"DROP TABLE {policy.release.table}")
    page = run_report(outcome.run, policy=policy, options=OPTIONS)
    assert CANARY not in page
    assert not re.search(r"8642\d", page.replace(outcome.run, ""))  # an id is of random digits
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|<script|<img|url\(", page)
    result = outcome.as_json()
    for number in (result["release"]["classes"], result["release"]["min_class_size"], result["source"]["rows"]):
        assert f"<dd>{number:,}</dd>" in page or f"of {number:,}" in page
    assert percent(result["metrics"]["gcp"]) in page
    assert "Verified and published" in page
    pictures = page.count('role="img"') - page.count('<title id="column-')
    assert pictures == (3 if algorithm == "top-down" else 4)
    assert len(set(re.findall(r'\bid="([^"]+)"', page))) == len(re.findall(r'\bid="([^"]+)"', page))


def test_passwords_are_not_in_it(postgres_url: str, tmp_path: Path) -> None:
    url = postgres_url.replace("//postgres@", f"//postgres:{CANARY}@")
    path, page = tmp_path / "policy.yml", tmp_path / "report.html"
    with open_database(url) as database:
        policy = made(database, "mondrian")
        data = policy.model_dump(mode="json", by_alias=True, exclude_unset=True)
        path.write_text(json.dumps(data), encoding="utf-8")
        run = anonymize(policy).run
    done = call("report", run, "--policy", path, "-o", page)
    assert done.exit_code == 0, done.output
    assert CANARY not in page.read_text(encoding="utf-8") + done.output


@pytest.mark.parametrize("algorithm", ["optimal", "incognito"])
def test_the_lattice_is_recorded_as_it_was_explored(database: Database, algorithm: str) -> None:
    policy = made(database, algorithm, remainder="suppress")
    recorded = anonymize(policy).as_json()["lattice"]
    chart = explore(policy, options=OPTIONS).chart
    assert chart is not None
    marks = "?fa"
    expected = [marks[chart.of(node)] for node in chart.lattice.nodes]
    checked = [node in chart.verdicts for node in chart.lattice.nodes]
    assert recorded["standing"] == "".join(
        mark.upper() if seen else mark for mark, seen in zip(expected, checked, strict=True)
    )
    assert recorded["minimal"] == len(chart.minimal)


def test_the_first_levels_of_a_tree_add_up(database: Database) -> None:
    policy = made(database, "mondrian")
    found = material(policy, anonymize(policy).run).tree
    assert found is not None
    assert found.rows == len(ROWS)
    assert found.parts

    def check(node: DrawnNode, depth: int) -> None:
        assert depth <= 3
        if node.parts:
            assert node.rows == sum(part.rows for part in node.parts)
            assert node.split in COLUMNS
            assert min(part.rows for part in node.parts) >= 4
        for part in node.parts:
            check(part, depth + 1)

    check(found, 0)
    assert len(found.parts) > 1


def test_an_old_run_says_what_it_did_not_record(database: Database) -> None:
    policy = made(database, "optimal")
    found = material(policy, anonymize(policy).run)
    record = json.loads(found.run.recorded or "")
    for key in ("quasi_identifiers", "lattice", "distributions", "combinations"):
        del record[key]
    del record["source"]["class_sizes"], record["source"]["max_class_size"]
    result = read_record(json.dumps(record))
    page = render(Material(found.run, found.policy, result, found.releases, None, ()))
    assert "This run did not record what became of each column." in page
    assert "This run did not record how the columns are distributed." in page
    assert "This run did not record which columns single rows out." in page
    assert "The catalog holds no lattice and no tree of this run that could be drawn." in page
    assert page.count("How it was before is not recorded.") == 2


def test_a_run_that_published_nothing_says_why(database: Database) -> None:
    policy = made(database, "mondrian", privacy=IMPOSSIBLE)
    with pytest.raises(ProtectionError):
        anonymize(policy)
    with open_recorded(catalog_place(policy)) as catalog:
        (run,) = catalog.runs()
        page = render(collect(catalog, run.id))
    assert "Refused: nothing was published" in page
    assert "Why it ended" in page
    assert "did not record" in page


def test_without_a_record_there_is_no_report(database: Database) -> None:
    policy = made(database, "mondrian")
    with pytest.raises(PolicyError, match="No run is recorded here"):
        run_report("1234", policy=policy)
    with Catalog.open(connect(database.url)):
        pass
    with pytest.raises(PolicyError, match="has no run '1234'"):
        run_report("1234", policy=policy)


def test_names_are_escaped(database: Database) -> None:
    name = 'a <b> & "c"'
    table = database.create({name: "INTEGER", "sex": "VARCHAR(1)"}, [(i % 9, "fm"[i % 2]) for i in range(40)])
    policy = database.policy(table, {name: "quasi-identifier", "sex": "quasi-identifier"})
    page = run_report(anonymize(policy).run, policy=policy)
    assert "<b>" not in page
    assert "a &lt;b&gt; &amp; " in page


def test_shares_above_a_threshold_are_those_of_smaller_classes() -> None:
    buckets = [SizeBucket(1, 1, 2, 2), SizeBucket(2, 4, 1, 3), SizeBucket(10, 19, 1, 15)]
    assert [share_above(buckets, size) for size in (1, 2, 5, 10, 20)] == [0.0, 0.1, 0.25, 0.25, 1.0]
    assert [percent(share) for share in (0.0, 0.00001, 0.004, 0.123, 1.0)] == [
        "0 %",
        "< 0.01 %",
        "0.4 %",
        "12.3 %",
        "100 %",
    ]
