"""Reading policies: the grammar as documented, every problem at once, no secrets in what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlanon.engines.urls import redacted, scrubbed
from sqlanon.errors import PolicyError
from sqlanon.policy import Hierarchy, KAnonymityParameters, Policy, RecursiveLDiversityParameters, Role, Show
from sqlanon.policy.loading import build_policy, load_policy, parse_policy
from sqlanon.policy.writer import policy_text

GRAMMAR = """
source:  {url: "duckdb:///hospital.duckdb", table: main.patients}     # ${ENV} expands
release: {table: main.patients_released}
attributes:
  ssn:     {role: identifier}                       # never leaves
  age:     {role: quasi-identifier}                 # numeric: split on values
  zipcode: {role: quasi-identifier, hierarchy: {mask: right}}
  admitted: {role: quasi-identifier, hierarchy: {date: [month, quarter, year]}}
  income:  {role: quasi-identifier, hierarchy: {intervals: [5000, 20000, 50000]}, show: bounds}
  job:     {role: quasi-identifier, hierarchy: {csv: job.csv}}
  sex:     {role: quasi-identifier, hierarchy: suppress}
  disease: {role: sensitive}
  note_id: {role: insensitive}
privacy:
  - {model: k-anonymity, k: 5}
  - {model: recursive-l-diversity, attribute: disease, c: 3, l: 3}
algorithm: {name: mondrian}
suppression: 0.0
"""

SMALL = """
source: {source}
release: {release}
attributes:
  age: {age}
  disease: {role: sensitive}
privacy:
  - {model}
"""

DEFAULTS = {
    "source": '{url: "duckdb:///a.duckdb", table: t}',
    "release": "{table: r}",
    "age": "{role: quasi-identifier}",
    "model": "{model: k-anonymity, k: 5}",
}


def small(extra: str = "", **parts: str) -> str:
    text = SMALL
    for name, value in {**DEFAULTS, **parts}.items():
        text = text.replace("{" + name + "}", value)
    return text + extra


def problems(text: str) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        parse_policy(text)
    return list(raised.value.problems)


def age_hierarchy(hierarchy: str) -> Hierarchy | None:
    policy = parse_policy(small(age=f"{{role: quasi-identifier, hierarchy: {hierarchy}}}"))
    return policy.attributes["age"].hierarchy


def test_the_documented_grammar_reads_as_printed(tmp_path: Path) -> None:
    file = tmp_path / "policy.yml"
    file.write_text(GRAMMAR)
    policy = load_policy(file)
    assert (policy.source.url, policy.source.table) == ("duckdb:///hospital.duckdb", "main.patients")
    assert policy.release.table == "main.patients_released"
    assert list(policy.attributes) == [
        "ssn",
        "age",
        "zipcode",
        "admitted",
        "income",
        "job",
        "sex",
        "disease",
        "note_id",
    ]
    assert policy.attributes["ssn"].role is Role.IDENTIFIER
    hierarchies = {name: a.hierarchy for name, a in policy.attributes.items() if a.hierarchy}
    assert {name: hierarchy.kind for name, hierarchy in hierarchies.items()} == {
        "zipcode": "mask",
        "admitted": "date",
        "income": "intervals",
        "job": "csv",
        "sex": "suppress",
    }
    assert hierarchies["admitted"].date == ("month", "quarter", "year")
    assert hierarchies["income"].intervals == (5000, 20000, 50000)
    assert hierarchies["job"].csv == str(tmp_path / "job.csv")
    assert policy.attributes["income"].show is Show.BOUNDS
    assert policy.privacy == (
        KAnonymityParameters(model="k-anonymity", k=5),
        RecursiveLDiversityParameters(model="recursive-l-diversity", attribute="disease", c=3, l=3),
    )


@pytest.mark.parametrize(
    "model",
    [
        "{model: distinct-l-diversity, attribute: disease, l: 3}",
        "{model: entropy-l-diversity, attribute: disease, l: 2.5}",
        "{model: t-closeness, attribute: disease, distance: kl, t: 0.2}",
        "{model: t-closeness, attribute: disease, t: 0}",
        "{model: variance-diversity, attribute: disease, v: 10}",
    ],
)
def test_every_model_reads_and_writes(model: str) -> None:
    policy = parse_policy(small(model=model))
    assert parse_policy(policy_text(policy)) == policy


def test_mapping_accepts_one_label_a_list_and_numbers() -> None:
    one = age_hierarchy("{mapping: {1: Low, 2: 7}, unknown: '*'}")
    assert one is not None
    assert (one.mapping, one.unknown) == ({"1": "Low", "2": "7"}, "*")
    two = age_hierarchy("{mapping: {Clerk: [Office, White collar], no: [3, on]}}")
    assert two is not None
    assert two.mapping == {"Clerk": ("Office", "White collar"), "no": ("3", "on")}


def test_files_take_the_place_of_tables_and_are_relative_to_the_policy(tmp_path: Path) -> None:
    text = small(source="{file: in/patients.parquet}", release="{file: out.csv}")
    policy = parse_policy(text, tmp_path)
    assert policy.source.file == str(tmp_path / "in" / "patients.parquet")
    assert policy.release.file == str(tmp_path / "out.csv")
    remote = small(source="{file: s3://b/x.parquet}", release="{file: out.csv}")
    assert parse_policy(remote, tmp_path).source.file == "s3://b/x.parquet"


def test_spark_reads_a_file_where_it_is(tmp_path: Path) -> None:
    """A name is relative to the policy, an address is the cluster's."""
    for name, place in (("people.parquet", str(tmp_path / "people.parquet")), ("s3a://b/people", "s3a://b/people")):
        policy = parse_policy(
            f"source: {{url: 'spark+local://2', file: '{name}'}}\nrelease: {{table: r}}\n"
            "attributes: {age: {role: quasi-identifier}}\nprivacy: [{model: k-anonymity, k: 2}]\n",
            tmp_path,
        )
        assert (policy.source.url, policy.source.file) == ("spark+local://2", place)


def test_a_file_has_no_database_for_a_table() -> None:
    (problem,) = problems(small(source="{file: a.csv}"))
    assert problem == "release (line 3) needs a url for its table, as the source is a file."
    parse_policy(small(source="{file: a.csv}", release="{url: 'duckdb:///b.duckdb', table: r}"))


def test_environment_expands_in_urls_and_file_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST", "db.example")
    policy = parse_policy(small(source='{url: "postgresql://${HOST}/a$$b$c", table: "${HOST}"}'))
    assert policy.source.url == "postgresql://db.example/a$b$c"
    assert policy.source.table == "${HOST}"
    assert parse_policy(policy_text(policy)) == policy


def test_an_unset_variable_is_named() -> None:
    (problem,) = problems(small(source='{url: "${SQLANON_NOT_SET}", table: t}'))
    assert problem.startswith("source.url (line 2)")
    assert "'SQLANON_NOT_SET' is not set" in problem
    (problem,) = problems(small(source="{url: ${SQLANON_NOT_SET}, table: t}"))
    assert "must be in quotes" in problem


def test_names_of_columns_are_plain_text() -> None:
    text = small().replace("  age:", "  no: {role: insensitive}\n  2019: {role: insensitive}\n  age:")
    assert list(parse_policy(text).attributes)[:2] == ["no", "2019"]


@pytest.mark.parametrize("key", ["1.50", "010", "true", "~", "0x1f", "1_000", ".inf"])
def test_a_key_that_yaml_would_change_needs_quotes(key: str) -> None:
    text = small().replace("  age:", f"  {key}: {{role: insensitive}}\n  age:")
    (problem,) = problems(text)
    assert f'write it in quotes: "{key}"' in problem
    quoted = parse_policy(text.replace(f"  {key}:", f"  '{key}':"))
    assert next(iter(quoted.attributes)) == key


WRONG = {
    "unknown key": ({"age": "{rolle: identifier, role: quasi-identifier}"}, "attributes.age.rolle", "'role'"),
    "role": ({"age": "{role: identifer}"}, "attributes.age.role", "'identifier'"),
    "model": ({"model": "{model: k-anonimity, k: 5}"}, "privacy[0].model", "'k-anonymity'"),
    "algorithm": ({"extra": "algorithm: {name: mondrain}"}, "algorithm.name", "'mondrian'"),
    "hierarchy kind": ({"age": "{role: quasi-identifier, hierarchy: {intervall: [5]}}"}, "age.hierarchy", "intervals"),
    "hierarchy word": ({"age": "{role: quasi-identifier, hierarchy: supress}"}, "age.hierarchy", "'suppress'"),
    "hierarchy without value": ({"age": "{role: quasi-identifier, hierarchy: mask}"}, "age.hierarchy", "{mask: …}"),
    "two hierarchies": (
        {"age": "{role: quasi-identifier, hierarchy: {mask: left, date: year}}"},
        "age.hierarchy",
        "exactly one of",
    ),
    "beginning of a role": ({"age": "{role: quasi}"}, "attributes.age.role", "did you mean 'quasi-identifier'?"),
    "top key": ({"extra": "supression: 0.1"}, "supression", "'suppression'"),
    "parameter of another model": ({"model": "{model: k-anonymity, k: 2, l: 2}"}, "privacy[0].l", "'k'"),
    "k: 0": ({"model": "{model: k-anonymity, k: 0}"}, "privacy[0].k", "a whole number of at least 1"),
    "k: five": ({"model": "{model: k-anonymity, k: five}"}, "privacy[0].k", "a whole number of at least 1"),
    "k as text": ({"model": "{model: k-anonymity, k: '5'}"}, "privacy[0].k", "a whole number of at least 1"),
    "k as a boolean": ({"model": "{model: k-anonymity, k: true}"}, "privacy[0].k", "a whole number of at least 1"),
    "k beyond all": ({"model": "{model: k-anonymity, k: 9223372036854775808}"}, "privacy[0].k", "9223372036854775807"),
    "k missing": ({"model": "{model: k-anonymity}"}, "privacy[0]", "k is missing; k-anonymity needs it"),
    "t < 0": ({"model": "{model: t-closeness, attribute: disease, t: -1}"}, "privacy[0].t", "at least 0"),
    "t not a number": ({"model": "{model: t-closeness, attribute: disease, t: .nan}"}, "privacy[0].t", "finite number"),
    "t endless": ({"model": "{model: t-closeness, attribute: disease, t: .inf}"}, "privacy[0].t", "finite number"),
    "c = 0": ({"model": "{model: recursive-l-diversity, attribute: disease, c: 0, l: 2}"}, ".c", "greater than 0"),
    "distance": (
        {"model": "{model: t-closeness, attribute: disease, distance: orderd, t: 1}"},
        ".distance",
        "'ordered'",
    ),
    "suppression": ({"extra": "suppression: 2"}, "suppression", "at least 0 and less than 1"),
    "unknown attribute": (
        {"model": "{model: distinct-l-diversity, attribute: desease, l: 2}"},
        "privacy[0].attribute",
        "'disease'",
    ),
    "not sensitive": (
        {"model": "{model: distinct-l-diversity, attribute: age, l: 2}"},
        "privacy[0].attribute",
        "must be sensitive",
    ),
    "source both": ({"source": "{url: u, table: t, file: f}"}, "source", "either url and table, or file"),
    "source both, but no Spark": ({"source": "{url: 'duckdb:///x', file: f}"}, "source", "together are for Spark"),
    "source without table": ({"source": "{url: u}"}, "source", "either url and table, or file"),
    "release both": ({"release": "{table: t, file: f}"}, "release", "either table or file"),
    "release neither": ({"release": "{}"}, "release", "either table or file"),
    "release name": ({"release": "{table: a..b}"}, "release (line 3)", "a part is empty"),
    "interval widths": ({"age": "{role: quasi-identifier, hierarchy: {intervals: [5, 5]}}"}, "age.hierarchy", "grow"),
    "negative width": ({"age": "{role: quasi-identifier, hierarchy: {intervals: -5}}"}, "age.hierarchy", "positive"),
    "no widths": ({"age": "{role: quasi-identifier, hierarchy: {intervals: []}}"}, "age.hierarchy", "positive"),
    "date order": (
        {"age": "{role: quasi-identifier, hierarchy: {date: [year, day]}}"},
        "age.hierarchy",
        "fine to coarse",
    ),
    "date word": ({"age": "{role: quasi-identifier, hierarchy: {date: [yaer]}}"}, "age.hierarchy.date[0]", "'year'"),
    "ragged mapping": (
        {"age": "{role: quasi-identifier, hierarchy: {mapping: {a: x, b: [x, y]}}}"},
        "age.hierarchy",
        "same number of levels",
    ),
    "label not text": (
        {"age": "{role: quasi-identifier, hierarchy: {mapping: {a: 1.5}}}"},
        "age.hierarchy.mapping.a",
        "in quotes",
    ),
    "unused option": ({"age": "{role: quasi-identifier, hierarchy: {mask: right, unknown: x}}"}, "unknown", "csv"),
    "unused origin": ({"age": "{role: quasi-identifier, hierarchy: {mask: right, origin: 3}}"}, "origin", "intervals"),
    "unused hierarchy": ({"age": "{role: insensitive, hierarchy: suppress}"}, "attributes.age", "does not use"),
    "unused show": ({"age": "{role: identifier, show: mean}"}, "attributes.age", "does not use"),
    "a part that is no mapping": (
        {"extra": "catalog: 3"},
        "catalog",
        "must be a mapping with keys such as url, schema",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_mistake_is_one_plain_sentence(name: str) -> None:
    parts, path, words = WRONG[name]
    (problem,) = problems(small(**parts))
    assert path in problem
    assert words in problem
    assert "http" not in problem
    assert "pydantic" not in problem
    assert "Input should" not in problem


def test_all_problems_come_at_once_with_their_lines() -> None:
    found = problems(
        small(
            source="{url: u, tabel: t}",
            age="{role: quasi_identifier, shwo: mean}",
            model="{model: k-anonymity, k: 0}\n  - {model: distinct-l-diversity, attribute: x, l: 2}\n  - 3",
            extra="suppression: many\n010: 3",
        )
    )
    places = ["source.tabel (line 2)", "attributes.age.role (line 5)", "attributes.age.shwo (line 5)"]
    places += [
        "privacy[0].k (line 8)",
        "privacy[1].attribute (line 9)",
        "privacy[2] (line 10)",
        "suppression (line 11)",
    ]
    for place in [*places, "010 (line 12)"]:
        assert any(problem.startswith(place) for problem in found), place


def test_a_key_given_twice_is_refused_without_its_values() -> None:
    (problem,) = problems(small(source='{url: "postgresql://u:pw1@h/d", url: "postgresql://u:pw2@h/d", table: t}'))
    assert problem == "source.url (line 2) is given twice."


@pytest.mark.parametrize(
    "text", ["a: [", "", "- 1", "a: &x {b: *x}", "\x00", "a: 1\n---\nb: 2", "[" * 300, "a: !!python/object:x 3"]
)
def test_what_is_no_policy_is_refused_plainly(text: str) -> None:
    assert problems(text)


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="No such file"):
        load_policy(tmp_path / "none.yml")
    (tmp_path / "latin.yml").write_bytes(b"a: \xe9")
    with pytest.raises(PolicyError, match="UTF-8"):
        load_policy(tmp_path / "latin.yml")


def test_passwords_are_not_shown() -> None:
    url = "postgresql://ann:S3cret@host/db?password=S3cret&sslmode=require"
    policy = parse_policy(small(source=f'{{url: "{url}", table: t}}', release=f'{{url: "{url}", table: r}}'))
    assert policy.source.url == url
    for text in (repr(policy), str(policy), repr(policy.source), str(policy.release), policy_text(policy)):
        assert "S3cret" not in text
        assert "ann" in text
    for wrong in (small(source=f'{{url: "{url}", tabel: t}}'), small(source=f'{{url: ["{url}"], table: t}}')):
        assert "S3cret" not in "\n".join(problems(wrong))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:pw@h/d", "postgresql://u@h/d"),
        ("postgresql+psycopg://u:p/w?@x@h:5432/d", "postgresql+psycopg://u@h:5432/d"),
        ("postgresql://u:p?w@h/d?sslmode=require&passfile=/f", "postgresql://u@h/d?sslmode=require&passfile=***"),
        ("postgresql://u@h/d?Password=a@b", "postgresql://u@h/d?Password=***"),
        ("postgresql:///d?user=u&p%61ssword=a@b", "postgresql:///d?user=u&p%61ssword=***"),
        ("postgresql://u@h:5432/d", "postgresql://u@h:5432/d"),
        ("duckdb:///a:b.duckdb", "duckdb:///a:b.duckdb"),
    ],
)
def test_redaction(url: str, shown: str) -> None:
    assert redacted(url) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("to u://x@h/z?password=q:q: it failed", "to u://x@h/z?password=***: it failed"),
        ("to u://x@h/z?password=qq&a=b can't", "to u://x@h/z?password=***&a=b can't"),
        ("to x:q q@h:1/z: no", "to x@h:1/z: no"),
        ("password=qq:", "password=***:"),
    ],
)
def test_sentences_stay_whole_without_their_secrets(text: str, shown: str) -> None:
    assert scrubbed(text) == shown


def test_the_text_of_a_policy_reads_back() -> None:
    policy = parse_policy(GRAMMAR + "suppressed: star\ncatalog: {schema: other}\n")
    assert parse_policy(policy_text(policy)) == policy
    assert policy_text(parse_policy(policy_text(policy))) == policy_text(policy)


def test_a_policy_can_be_built_from_data_without_changing_it() -> None:
    data = {
        "source": {"url": "duckdb:///a.duckdb", "table": "t"},
        "release": {"table": "r"},
        "attributes": {"age": {"role": "quasi-identifier", "hierarchy": "suppress"}},
        "privacy": [{"model": "k-anonymity", "k": 2}],
    }
    assert isinstance(build_policy(data), Policy)
    assert data["attributes"] == {"age": {"role": "quasi-identifier", "hierarchy": "suppress"}}
    with pytest.raises(PolicyError, match=r"attributes\.age\.role: 'x' is unknown"):
        build_policy({**data, "attributes": {"age": {"role": "x"}}})
