"""Drafts tried on a sample, on both engines: the costs are those of runs, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from sqlanon.api.calls import draft
from sqlanon.inquiries.profile.costs import DraftCosts
from sqlanon.inquiries.profile.draft import Draft, choose_k
from sqlanon.policy import Policy, Role
from sqlanon.policy.loading import parse_policy
from tests.cli.support import call, execute, only_object, query
from tests.run_support import run

pytestmark = pytest.mark.slow

ROWS = 120
COLUMNS = {
    "visit_id": "i",
    "age": "20 + i * 7 % 59",
    "city": "'c' || i * 5 % 7",
    "region": "'r' || i * 5 % 7 % 2",
    "sex": "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END",
    "illness": "'d' || i * 3 % 11 % 3",
    "hiv": "CASE WHEN i % 5 = 0 THEN 'yes' ELSE 'no' END",
}


def make_visits(url: str, rows: int = ROWS) -> None:
    columns = ", ".join(f"{expression} AS {name}" for name, expression in COLUMNS.items())
    execute(url, f"CREATE TABLE visits AS SELECT {columns} FROM generate_series(1, {rows}) AS n(i)")


def drafted(url: str, **given: Any) -> tuple[Draft, DraftCosts]:
    found = draft(url, "visits", **given)
    assert found.costs is not None
    return found, found.costs


def gcp(policy: Policy) -> tuple[float, int]:
    """The loss and the number of classes of a run."""
    result = run(policy, replace=True).as_json()
    return result["metrics"]["gcp"], result["release"]["classes"]


def with_models(policy: Policy, *attributes: str) -> Policy:
    """The policy with k-anonymity and the models about these attributes."""
    kept = tuple(m for m in policy.privacy if m.model == "k-anonymity" or m.attribute in attributes)
    return policy.model_copy(update={"privacy": kept})


def without(policy: Policy, name: str) -> Policy:
    freed = policy.attributes[name].model_copy(update={"role": Role.INSENSITIVE, "hierarchy": None})
    return policy.model_copy(update={"attributes": {**policy.attributes, name: freed}})


@pytest.mark.either_engine
def test_costs_are_those_of_runs(database_url: str) -> None:
    make_visits(database_url)
    found, costs = drafted(database_url)
    policy = parse_policy(found.text)
    assert (costs.rows, costs.is_whole) == (ROWS, True)
    assert costs.draft is not None
    assert costs.k_alone is not None
    assert (costs.draft.loss, costs.draft.classes) == gcp(policy)
    assert (costs.k_alone.loss, costs.k_alone.classes) == gcp(with_models(policy))
    assert set(costs.without_model) == {"illness", "hiv"}
    assert costs.without_model["hiv"].loss == gcp(with_models(policy, "illness"))[0]
    assert costs.without_column
    for name, attempt in costs.without_column.items():
        assert (attempt.loss, attempt.classes) == gcp(without(policy, name))


@pytest.mark.either_engine
def test_the_draft_says_what_its_parts_cost(database_url: str) -> None:
    make_visits(database_url)
    found, costs = drafted(database_url)
    assert costs.draft is not None
    assert costs.k_alone is not None
    assert costs.costliest is not None
    assert f"# Tried on a sample of {ROWS} rows (every combination of values)" in found.text
    line = next(line for line in found.text.splitlines() if line.startswith(f"  {costs.costliest}:"))
    assert f"loses {100 * costs.draft.of[costs.costliest]:.1f} %" in line
    assert "without it" in line
    model = next(line for line in found.text.splitlines() if "distinct-l-diversity" in line)
    assert f"with it GCP {100 * costs.draft.loss:.1f} % ({costs.draft.classes:,} classes)" in model
    assert "without it GCP" in model
    assert f"alone it costs GCP {100 * costs.k_alone.loss:.1f} %" in found.text
    assert draft(database_url, "visits").text == found.text  # nothing in it depends on the clock


@pytest.mark.either_engine
def test_l_is_below_the_number_of_sensitive_values(database_url: str) -> None:
    make_visits(database_url)
    policy = parse_policy(draft(database_url, "visits", trying=False).text)
    about = {m.attribute: m for m in policy.privacy if m.model != "k-anonymity"}
    assert (about["illness"].model, about["illness"].l) == ("distinct-l-diversity", 2)  # of three values
    assert (about["hiv"].model, about["hiv"].t) == ("t-closeness", 0.3)  # of two


@pytest.mark.parametrize(
    ("rows", "k"), [(0, 2), (1, 2), (2, 2), (99, 3), (8_802, 5), (1_414_593, 10), (50_000_000, 20)]
)
def test_k_goes_by_the_size_of_the_table(rows: int, k: int) -> None:
    assert choose_k(rows) == k


@pytest.mark.either_engine
def test_columns_that_follow_from_others_are_named(database_url: str) -> None:
    make_visits(database_url)
    execute(database_url, "ALTER TABLE visits ADD COLUMN town TEXT", "UPDATE visits SET town = 't' || city")
    found, _ = drafted(database_url)
    known = {(one.of, one.on): one.mutual for one in found.profile.dependences}
    assert known == {("city", "region"): False, ("city", "town"): True, ("town", "region"): False}
    assert "#   city <-> town: they say the same" in found.text
    assert "#   city -> region: region says nothing more" in found.text


@pytest.mark.either_engine
def test_a_sensitive_value_that_follows_from_others_is_named(database_url: str) -> None:
    make_visits(database_url)
    execute(database_url, "UPDATE visits SET illness = 'd' || region")
    found, _ = drafted(database_url)
    assert "#   city -> illness: whoever knows city knows what is sensitive" in found.text
    assert "#   illness" not in found.text


@pytest.mark.either_engine
def test_nothing_is_left_behind(database_url: str) -> None:
    make_visits(database_url)
    listed = "SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2"
    before = query(database_url, listed)
    drafted(database_url)
    assert query(database_url, listed) == before


@pytest.mark.either_engine
def test_a_sample_stands_for_a_large_table(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlanon.inquiries.profile.tryout.MOST_TUPLES", 300)
    monkeypatch.setattr("sqlanon.inquiries.profile.tryout.MOST_ROWS", 3_000)
    make_visits(database_url, 30_000)
    found, costs = drafted(database_url)
    assert costs.draft is not None
    assert not costs.is_whole
    assert 300 <= costs.rows <= 12_000
    assert "a part of the combinations of values" in found.text
    assert costs.draft.loss < 0.6


def test_rare_combinations_keep_their_rows(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlanon.inquiries.profile.tryout.MOST_ROWS", 100)
    execute(
        database_url,
        "CREATE TABLE visits AS SELECT CASE WHEN i <= 7 THEN 80 ELSE i % 2 END AS age"
        " FROM generate_series(1, 2007) AS n(i)",
    )
    _, costs = drafted(database_url)
    assert costs.rows == 7 + 2 * 50  # of 1,000 rows each a twentieth, of the rare ones all


def test_a_reader_gets_a_draft_that_was_not_tried(
    postgres_url: str, postgres_connection: psycopg.Connection[Any], restricted_role: tuple[str, str]
) -> None:
    role, url = restricted_role
    make_visits(postgres_url)
    postgres_connection.execute(f"GRANT SELECT ON visits TO {role}")
    postgres_connection.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
    found, costs = drafted(url)
    assert costs.draft is None
    assert costs.problem
    assert "# The draft was not tried: " in found.text
    assert parse_policy(found.text.replace("${SQLANON_URL}", "postgresql:///x")).privacy


def test_a_file_is_tried_without_a_database(tmp_path: Path) -> None:
    rows = "".join(f"{20 + i * 7 % 60},c{i % 7},d{i % 4}\n" for i in range(300))
    (tmp_path / "visits.csv").write_text("age,city,illness\n" + rows)
    result = call("init", tmp_path / "visits.csv", "-o", tmp_path / "policy.yml")
    assert result.exit_code == 0
    assert "Tried on a sample of 300 rows in " in result.stderr
    assert "; loses " in (tmp_path / "policy.yml").read_text()


@pytest.mark.either_engine
def test_the_trial_can_be_left_out(database_url: str) -> None:
    make_visits(database_url)
    result = call("init", database_url, "visits", "--no-try")
    assert result.exit_code == 0
    assert "Tried" not in result.stdout + result.stderr
    assert "; loses " not in result.stdout


@pytest.mark.either_engine
def test_programs_read_what_the_draft_costs(database_url: str, tmp_path: Path) -> None:
    make_visits(database_url)
    result = call("init", database_url, "visits", "--json", "-o", tmp_path / "policy.yml")
    told = only_object(result.stdout)
    assert told["policy"] == (tmp_path / "policy.yml").read_text()
    assert told["trial"]["rows"] == ROWS
    assert told["trial"]["costliest"] in told["trial"]["losses"]
    assert set(told["trial"]["without_model"]) == {"illness", "hiv"}
    assert told["dependences"] == [{"of": "city", "on": "region", "mutual": False}]
    assert [one["name"] for one in told["columns"]] == list(COLUMNS)


@pytest.mark.parametrize(("models", "tries"), [(10, 3), (11, 0), (51, None)])
def test_many_models_are_tried_together_or_not_at_all(postgres_url: str, models: int, tries: int | None) -> None:
    """A search takes statements for each model: of many none is left out in turn, and with more there is no trial."""
    columns = ", ".join(f"'d' || (i + {n}) % 4 AS diagnosis_{n}" for n in range(models))
    execute(
        postgres_url, f"CREATE TABLE visits AS SELECT 20 + i % 9 AS age, {columns} FROM generate_series(1, 20) n(i)"
    )
    found, costs = drafted(postgres_url)
    if tries is None:
        assert costs.draft is None
        assert f"# The draft was not tried: it has {models} models about columns" in found.text
    else:
        assert costs.draft is not None
        assert len(costs.without_model) == tries
