"""Tables that belong together: whoever joins the released tables learns of nobody more than the models allow."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.policy.dividing import load_tables
from sqlanon.releases.rules.store_rules import read_rules
from sqlanon.results.measures import Check
from sqlanon.results.run_result import RunResult
from sqlanon.runs.tables.references import KeyClasses, check_groups
from sqlanon.runs.tables.verifying import all_satisfied, measure_sources, verify_tables
from sqlanon.sql import Relation
from tests.run_support import OPTIONS, Database
from tests.tables.clinics import (
    RELEASE,
    SOURCE,
    Clinic,
    add_labs,
    fewest_candidates,
    policy_data,
    policy_data_of,
    release,
    shown_labs,
    shown_visits,
    tables_of,
    with_labs,
)


def test_whoever_knows_a_row_and_two_visits_has_candidates(database: Database) -> None:
    draws, released = random.Random(8), 0
    for _ in range(6):
        clinic = Clinic.drawn(draws, draws.randrange(8, 14))
        clinic.create(database)
        try:
            results = release(policy_data(database))
        except ProtectionError:
            continue
        people = shown_visits(database)
        assert fewest_candidates(people, 0) >= 4
        assert fewest_candidates(people, 2) >= 2
        released += sum(len(visits) for _, visits in people.values())
        visits = results["visits"]
        assert isinstance(visits, RunResult)
        assert visits.release.rows == sum(len(visits) for _, visits in people.values())
    assert released > 20


def test_without_the_model_of_visits_they_tell_people_apart(database: Database) -> None:
    """So that the test before can fail."""
    Clinic.drawn(random.Random(8), 12).create(database)
    weak = [{"model": "k-anonymity", "k": 4}, {"model": "k-anonymity", "k": 1, "of": ["visits"]}]
    release(policy_data(database, privacy=weak))
    assert fewest_candidates(shown_visits(database), 2) == 1


def test_every_class_within_one_of_people_has_its_sensitive_values(database: Database) -> None:
    Clinic.drawn(random.Random(3), 40).create(database)
    models = [
        {"model": "k-anonymity", "k": 8},
        {"model": "distinct-l-diversity", "attribute": "visits.ill", "l": 3},
    ]
    release(policy_data(database, privacy=models))
    counts = database.sql(
        f"SELECT count(DISTINCT v.ill) FROM {RELEASE}.visits AS v JOIN {RELEASE}.patients AS p"
        " ON p.patient_id = v.patient_id GROUP BY p.age, p.zip, p.town, v.day, v.ward"
    )
    assert counts
    assert min(count for (count,) in counts) >= 3


def test_visits_of_nobody_are_left_out_and_counted(database: Database) -> None:
    clinic = Clinic.drawn(random.Random(5), 30)
    clinic.create(database)
    visits = release(policy_data(database))["visits"]
    assert isinstance(visits, RunResult)
    assert visits.source.rows == len(clinic.visits)
    assert visits.checks["references"] == Check(0, len(clinic.visits) - 2)
    numbers = {n for (n,) in database.sql(f"SELECT visit_id FROM {RELEASE}.visits")}
    strangers = {row[0] for row in clinic.visits if row[1] is None or row[1] >= 30}
    assert not numbers & strangers


def test_pseudonyms_join_the_tables_of_one_release_and_no_others(database: Database) -> None:
    Clinic.drawn(random.Random(5), 30).create(database)
    release(policy_data(database))
    first = {key for (key,) in database.sql(f"SELECT patient_id FROM {RELEASE}.patients")}
    release(policy_data(database))
    second = {key for (key,) in database.sql(f"SELECT patient_id FROM {RELEASE}.patients")}
    assert len(first) == len(second) == 30
    assert not first & second
    assert {key for (key,) in database.sql(f"SELECT patient_id FROM {RELEASE}.visits")} <= second


def test_all_old_tables_stay_where_the_last_one_fails(database: Database) -> None:
    """The second table can't be replaced, as others depend on its columns: so the first one is not."""
    Clinic.drawn(random.Random(5), 30).create(database)
    data = policy_data(database)
    release(data)
    before = {name: database.sql(f"SELECT * FROM {RELEASE}.{name}") for name in ("patients", "visits")}
    database.sql(f"CREATE VIEW {RELEASE}.days AS SELECT ward FROM {RELEASE}.visits")
    data["tables"]["visits"]["attributes"]["ward"] = {"role": "omit"}
    with pytest.raises(PolicyError):
        release(data)
    assert {name: database.sql(f"SELECT * FROM {RELEASE}.{name}") for name in before} == before
    assert database.leftovers() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"people": {"table": "patient", "key": "patient_id"}},
            "'patient' is not among the tables; did you mean 'patients'",
        ),
        ({"people": {"table": "patients", "key": "id"}}, "'id' is not among the attributes of patients"),
        ({"privacy": [{"model": "k-anonymity", "k": 4}]}, "tables.visits: no model of `privacy` is about it"),
        (
            {
                "privacy": [
                    {"model": "k-anonymity", "k": 4},
                    {"model": "distinct-l-diversity", "attribute": "ill", "l": 2},
                ]
            },
            "write 'ill' with its table, as patients.ill",
        ),
        ({"surce": {}}, "unknown key 'surce'; did you mean 'source'"),
    ],
)
def test_what_does_not_fit_is_named(database: Database, change: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError) as error:
        tables_of(policy_data(database, **change))
    assert message in str(error.value)


def test_a_circle_of_references_is_named() -> None:
    data = {
        "source": {"schema": SOURCE, "url": "duckdb:///x"},
        "release": {"schema": RELEASE},
        "people": {"table": "a", "key": "n"},
        "tables": {
            "a": {"references": {"b": "b"}, "attributes": {"n": {"role": "identifier"}, "b": {"role": "insensitive"}}},
            "b": {"references": {"n": "a"}, "attributes": {"b": {"role": "insensitive"}, "n": {"role": "identifier"}}},
        },
        "privacy": [{"model": "k-anonymity", "k": 2}],
    }
    with pytest.raises(PolicyError, match="a → b → a"):
        tables_of(data)


def test_rows_that_refer_to_rows_of_people_are_classed_within_theirs(database: Database) -> None:
    """Laboratory values of visits: what a visit shows is known of its values, and those of other persons are gone."""
    draws, released = random.Random(4), 0
    for _ in range(4):
        clinic = Clinic.drawn(draws, draws.randrange(12, 18))
        clinic.create(database)
        add_labs(database, clinic, draws)
        try:
            release(with_labs(policy_data(database)))
        except ProtectionError:
            continue
        people = shown_labs(database)
        assert fewest_candidates(people, 2) >= 2
        released += sum(len(labs) for _, labs in people.values())
    assert released > 20


def test_a_table_that_refers_to_people_by_others_alone_needs_their_key(database: Database) -> None:
    data = with_labs(policy_data(database))
    del data["tables"]["labs"]["references"]["patient_id"]
    with pytest.raises(PolicyError, match="labs refers to patients by 'visits' alone; name a view of it"):
        tables_of(data)


def test_no_table_leaves_rules_by_which_it_would_be_released_alone(database: Database) -> None:
    """Patients released by themselves would have other pseudonyms, and classes that visits are not cut within."""
    Clinic.drawn(random.Random(5), 30).create(database)
    runs = [result.run for result in release(policy_data(database)).values()]
    with connect(database.url, OPTIONS) as engine, Catalog.open(engine) as catalog:
        for run in runs:
            with pytest.raises(PolicyError, match="released together with other tables"):
                read_rules(catalog, run)


KEY = {"role": "identifier", "show": "pseudonym", "key": "drawn"}


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("visits", {"references": {"patient_id": "patients", "sent_by": "patients"}}, "rows of several persons can't"),
        ("patients", {"key": "age"}, "others refer to people by people.key, 'patient_id'; leave it out"),
        ("visits", {"visit_id": {"role": "identifier"}}, "the release joins the tables by 'visit_id' of visits"),
        ("visits", {"visit_id": {"role": "quasi-identifier"}}, "the release joins the tables by 'visit_id' of visits"),
        ("visits", {"visit_id": None}, "labs.references.visit_id: visits has no attribute 'visit_id'"),
        ("visits", {"patient_id": {**KEY, "key": "${OTHER}"}}, "it shows what 'patient_id' of patients shows"),
        ("visits", {"patient_id": {"role": "insensitive"}}, "it shows what 'patient_id' of patients shows"),
        ("visits", {"patient_id": {"role": "identifier"}}, "it shows what 'patient_id' of patients shows"),
        ("labs", {"visit_id": {"role": "insensitive"}}, "it shows what 'visit_id' of visits shows"),
        (
            "visits",
            {"references": {"patient_id": "patients", "ward_id": "wards"}},
            "tables.visits.references.ward_id: list 'ward_id' in the attributes of visits",
        ),
    ],
)
def test_keys_that_do_not_join_are_named_before_any_work(table: str, change: dict[str, Any], message: str) -> None:
    data = with_labs(policy_data_of("duckdb:///nowhere"))
    data["tables"]["wards"] = {"attributes": {"ward_id": {"role": "insensitive"}}}
    section = data["tables"][table]
    for name, its in change.items():
        place = section if name in ("references", "key") else section["attributes"]
        place[name] = its
    section["attributes"] = {name: its for name, its in section["attributes"].items() if its is not None}
    if change.get("visit_id", ...) is None:
        section["key"] = "visit_id"
    with pytest.raises(PolicyError) as error:
        tables_of(data)
    assert message in str(error.value)


def test_a_column_that_refers_to_people_may_be_listed_as_it_is_shown() -> None:
    data = policy_data_of("duckdb:///nowhere")
    data["tables"]["visits"]["attributes"]["patient_id"] = KEY
    assert tables_of(data).part("visits").person == "patient_id"


def test_a_model_of_an_attribute_names_no_table_beside_it() -> None:
    of_two = {"model": "distinct-l-diversity", "attribute": "visits.ill", "l": 2, "of": ["visits"]}
    with pytest.raises(PolicyError, match=r"the table of its attribute; leave it out\."):
        tables_of(policy_data_of("duckdb:///nowhere", privacy=[{"model": "k-anonymity", "k": 4}, of_two]))


def test_risk_of_sources_and_releases_counts_what_joined_tables_tell(database: Database) -> None:
    clinic = Clinic.drawn(random.Random(9), 25)
    clinic.create(database)
    data = policy_data(database)
    tables = tables_of(data)
    raw = {
        row[0]: (tuple(row[1:]), [tuple(v[2:4]) for v in clinic.visits if v[1] == row[0]]) for row in clinic.patients
    }
    source = measure_sources(tables, OPTIONS)["visits"]
    assert source.persons is not None
    alone = sum(
        any(sum(other == row and visit in theirs for other, theirs in raw.values()) == 1 for visit in visits)
        for row, visits in raw.values()
    )
    assert source.persons.singled is not None
    assert source.persons.singled.by_1 == alone


def test_a_run_names_the_table_that_does_not_fit(database: Database) -> None:
    Clinic.drawn(random.Random(5), 30).create(database)
    data = policy_data(database)
    data["tables"]["visits"]["attributes"]["room"] = {"role": "insensitive"}
    with pytest.raises(PolicyError, match=r"^tables\.visits: attributes\.room: "):
        release(data)


@pytest.mark.parametrize("url", ["spark://nowhere:15002", "${SCHEMA_URL}"])
def test_a_database_without_transactions_is_refused_before_it_is_reached(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHEMA_URL", "spark://nowhere:15002")
    policy = tmp_path / "policy.yml"
    policy.write_text(json.dumps(policy_data_of(url, catalog={"url": "duckdb:///catalog.duckdb"})))
    with pytest.raises(PolicyError, match="Spark changes one table at a time"):
        load_tables(policy)


def released_of_two(database: Database) -> dict[str, Any]:
    """A release of visits of two persons or more in each class; the policy."""
    Clinic.drawn(random.Random(5), 30).create(database)
    data = policy_data(database)
    data["privacy"][1] = {"model": "k-anonymity", "k": 2, "of": ["visits"]}
    release(data)
    assert all_satisfied(verify_tables(tables_of(data), OPTIONS))
    return data


def test_verification_sees_rows_of_nobody(database: Database) -> None:
    """Each class gets further rows, so that models hold for those that are left."""
    data = released_of_two(database)
    database.sql(f"INSERT INTO {RELEASE}.visits SELECT visit_id, 'nobody', day, ward, ill FROM {RELEASE}.visits")
    assert not all_satisfied(verify_tables(tables_of(data), OPTIONS))


def test_verification_joins_rows_with_what_persons_show(database: Database) -> None:
    """All visits show the same, so that the classes of their persons alone tell them apart; one keeps a single one."""
    data = released_of_two(database)
    database.sql(f"UPDATE {RELEASE}.visits SET day = '1', ward = '1'")
    assert all_satisfied(verify_tables(tables_of(data), OPTIONS))
    people = shown_visits(database)
    one, row = next((key, row) for key, (row, visits) in people.items() if visits)
    for key, (other, _) in people.items():
        if other == row and key != one:
            database.sql(f"DELETE FROM {RELEASE}.visits WHERE patient_id = ?", [key])
    assert not all_satisfied(verify_tables(tables_of(data), OPTIONS))


def test_rows_whose_visit_is_of_another_person_are_left_out(database: Database) -> None:
    """Nothing of them is judged, so that all others are released as they are."""
    draws = random.Random(9)
    clinic = Clinic.drawn(draws, 30)
    clinic.create(database)
    own = {visit: patient for visit, patient, *_ in clinic.visits}
    labs = add_labs(database, clinic, draws)
    more = [(len(labs) + n, draws.randrange(30), draws.choice(list(own)), 1) for n in range(30)]
    database.insert(f"{SOURCE}.labs", more)
    data = with_labs(policy_data(database))
    data["tables"]["labs"]["attributes"]["amount"] = {"role": "insensitive"}
    data["privacy"] = [{"model": "k-anonymity", "k": 4}, {"model": "k-anonymity", "k": 1, "of": ["visits"]}]
    release(data)
    expected = {
        number
        for number, patient, visit, _ in [*labs, *more]
        if patient in range(30) and (visit is None or own[visit] == patient)
    }
    assert {number for (number,) in database.sql(f"SELECT lab_id FROM {RELEASE}.labs")} == expected
    assert len(expected) < len(labs) + len(more) - 10


def test_more_rows_are_not_left_out_than_the_policy_allows(database: Database) -> None:
    Clinic.drawn(random.Random(5), 30).create(database)
    data = policy_data(database)
    release(data)
    before = database.sql(f"SELECT * FROM {RELEASE}.visits")
    data["privacy"][1]["k"] = 5  # of classes of four patients or more
    data["tables"]["visits"]["suppression"] = 0
    with pytest.raises(ProtectionError, match=r"tables\.visits: .* suppression allows 0"):
        release(data)
    assert database.sql(f"SELECT * FROM {RELEASE}.visits") == before
    assert database.leftovers() == []


def test_a_key_that_repeats_is_refused(database: Database) -> None:
    """Nobody could tell which of two visits a laboratory value is of."""
    clinic = Clinic.drawn(random.Random(5), 30)
    clinic.create(database)
    add_labs(database, clinic, random.Random(5))
    database.insert(f"{SOURCE}.visits", [clinic.visits[0]])
    with pytest.raises(PolicyError, match=r"tables\.visits\.key: 'visit_id' repeats"):
        release(with_labs(policy_data(database)))


KEYS = [("a", "a", 1), ("b", "b", 1), ("c", "c", 2)]


@pytest.mark.parametrize(
    ("rows", "violations"),
    [
        ([("a", 1), ("b", 1), ("c", 2)], 0),
        ([("a", 1), ("b", 1), ("c", 1)], 3),  # one number for two classes of persons
        ([("a", 1), ("b", 2), ("c", 3)], 2),  # two numbers for one class
        ([("a", 1), ("b", 1), ("z", 2)], 1),  # nobody's
        ([("a", 1), ("b", 1), (None, 2)], 1),
    ],
)
def test_staged_groups_are_those_of_the_classes_of_persons(
    database: Database, rows: list[tuple[str | None, int]], violations: int
) -> None:
    database.create({"key": "VARCHAR(1)", "person": "VARCHAR(1)", "class": "BIGINT"}, KEYS, "of_keys")
    database.create({"patient_id": "VARCHAR(1)", "number": "BIGINT"}, rows, "staged")
    part = tables_of(policy_data(database)).part("visits")
    with connect(database.url, OPTIONS) as engine:
        classes = {"patients": KeyClasses("patients", Relation("of_keys"), 2)}
        assert check_groups(engine, part, Relation("staged"), classes, "number") == Check(violations, len(rows))


def test_visits_of_people_whose_values_are_too_much_alike_are_left_out(database: Database) -> None:
    """Those of the young are of one illness; all others are released."""
    drawn = Clinic.drawn(random.Random(3), 40)
    young = {number for number, age, *_ in drawn.patients if age < 45}
    visits = [(*row[:4], "flu" if row[1] in young else row[4]) for row in drawn.visits]
    Clinic(drawn.patients, visits).create(database)
    data = policy_data(database)
    data["tables"]["patients"]["attributes"] |= {name: {"role": "omit"} for name in ("zip", "town")}
    data["privacy"][1:] = [{"model": "distinct-l-diversity", "attribute": "visits.ill", "l": 3}]
    release(data)
    counts = database.sql(
        f"SELECT count(DISTINCT v.ill) FROM {RELEASE}.visits AS v JOIN {RELEASE}.patients AS p"
        " ON p.patient_id = v.patient_id GROUP BY p.age, v.day, v.ward"
    )
    assert counts
    assert min(count for (count,) in counts) >= 3


def test_what_is_wrong_with_the_last_table_is_said_before_the_first_is_searched(database: Database) -> None:
    Clinic.drawn(random.Random(5), 30).create(database)
    data = policy_data(database)
    data["tables"]["patients"]["attributes"]["shoe"] = {"role": "omit"}
    data["tables"]["visits"]["attributes"]["weather"] = {"role": "omit"}
    with pytest.raises(PolicyError) as error:
        release(data)
    named = [f"tables.{table}: attributes.{column}" for table, column in (("patients", "shoe"), ("visits", "weather"))]
    assert all(any(problem.startswith(name) for problem in error.value.problems) for name in named)
    with connect(database.url, OPTIONS) as engine, Catalog.open(engine) as catalog:
        assert catalog.runs() == []


def test_each_run_tells_of_its_own_table_alone(database: Database) -> None:
    """The class of the person is no column that loses anything, and statements are those of the run that sent them."""
    Clinic.drawn(random.Random(5), 40).create(database)
    results = release(policy_data(database))
    visits = results["visits"]
    assert isinstance(visits, RunResult)
    assert visits.quasi_identifiers is not None
    assert [one.name for one in visits.quasi_identifiers] == ["day", "ward"]
    losses = [one.loss for one in visits.quasi_identifiers]
    assert visits.metrics.gcp == pytest.approx(sum(loss for loss in losses if loss is not None) / 2, abs=1e-6)
    with connect(database.url, OPTIONS) as engine, Catalog.open(engine) as catalog:
        names = {name: {step.name for step in catalog.steps(result.run)} for name, result in results.items()}
    assert "runs/tables/place_rows" in names["visits"]
    assert "runs/tables/place_rows" not in names["patients"]
