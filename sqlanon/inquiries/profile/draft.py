"""Drafts a policy from a profile: YAML that loads as it stands, with columns, models, and the facts as comments."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from sqlanon.engines.columns import Kind
from sqlanon.engines.dialects import find_dialect
from sqlanon.engines.embedded import EMBEDDED
from sqlanon.engines.files import STANDARD_INPUT
from sqlanon.engines.read_options import FileReading, ReadOptions
from sqlanon.engines.urls import holds_secret
from sqlanon.inquiries.profile import remarks
from sqlanon.inquiries.profile.column_facts import RARE, Basis, ColumnFacts, Profile, Proposal
from sqlanon.inquiries.profile.costs import Attempt, DraftCosts
from sqlanon.inquiries.profile.hierarchy import draft_hierarchy, other_forms
from sqlanon.inquiries.profile.writing import comment, percent, quoted
from sqlanon.policy import Recodes, Role
from sqlanon.sql import MAX_IDENTIFIER_BYTES, Relation, Unquoted
from sqlanon.support.environment import Expanded, named, without_references, written
from sqlanon.support.quantities import quantity

URL_VARIABLE = "SQLANON_URL"


SCHEMA_FILE = "policy.schema.json"  # what `sqlanon schema` is to write for editors


_WRITTEN = {  # what is read but not written, and what is written in its place
    **dict.fromkeys((".tsv", ".json", ".jsonl", ".ndjson", ".xlsx"), ".csv"),
    ".zst": ".gz",
}


_HIERARCHIES = (
    "A hierarchy shows the same bands or groups in every row, so that a release can be grouped by them. Without one a",
    "column is cut where its rows are: less of it is lost, and its labels overlap.",
)


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[ -][A-Za-z0-9_]+)*")


_WORDS_OF_YAML = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


K_FROM = ((0, 3), (100, 5), (100_000, 10), (10_000_000, 20))  # from so many rows on


DIVERSITY = 3


CLOSENESS = 0.3


DEAR = 0.05  # of GCP, that a model adds


@dataclass(frozen=True)
class Draft:
    """A drafted policy: its text, and what it rests on.

    costs: what it cost when it was tried; None where it was not.
    shown: what the draft says of the reading of a file that nobody gave, in sentences.
    refusals: why a check would refuse it as it stands.
    """

    text: str
    profile: Profile
    costs: DraftCosts | None
    shown: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """One object of plain values."""
        return {
            "policy": self.text,
            **self.profile.as_json(),
            "trial": None if self.costs is None else self.costs.as_json(),
            **({} if self.profile.reading is None else {"reading": self.profile.reading.as_json()}),
            "refusals": list(self.refusals),
        }


def propose_policy(
    profile: Profile,
    source_url: str | None,
    table: str,
    options: ReadOptions | None = None,
    costs: DraftCosts | None = None,
    refusals: Sequence[str] = (),
) -> str:
    """The draft; without a URL, or where the profile is of a file, `table` is one. A password is not written.

    options: how the file is to be read, where that was given.
    costs: what the draft cost when it was tried, which is said beside its columns and models.
    refusals: why a check would refuse the draft as it stands, which is said at its head.
    """
    is_file = source_url is None or profile.reading is not None
    sections = [
        _heading(profile, table),
        remarks.refused(refusals),
        _read(profile, options) + _places(source_url, table, profile.reading, is_file=is_file) + _trust(profile),
        _subject(profile),
        "attributes:\n" + "\n".join(column_line(profile, facts, None, costs) for facts in profile.columns),
        remarks.combinations(profile),
        remarks.dependences(profile),
        remarks.tried(costs),
        "privacy:\n" + "\n".join(draft_models(profile, costs)),
        f"{_algorithm(profile, source_url)}suppression: 0.0    # the largest share of rows that may be left out",
        "# ranges: cuts    # for a job (`sqlanon freeze`): rows of later days show the same labels",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _heading(profile: Profile, table: str) -> str:
    estimated = "" if profile.exact else " What is marked `about` is estimated."
    fixed = "".join(
        f"# {line}\n" if any(draft_hierarchy(facts) for facts in profile.named(Role.QUASI_IDENTIFIER)) else ""
        for line in _HIERARCHIES
    )
    size = f"{quantity(profile.rows, 'row')}, {quantity(len(profile.columns), 'column')}"
    return (
        f"# yaml-language-server: $schema={SCHEMA_FILE}\n"
        f"# A draft for {comment(named(table))}: {size}.{estimated}\n"
        "# Every role is a proposal: look at each, then run `sqlanon check` on this file.\n"
        "# Roles: identifier (names persons: never leaves), quasi-identifier (others may know it: generalized),\n"
        "#        sensitive (kept, protected by the models), insensitive (kept), omit (left out).\n"
        f"{fixed}"
        f"# Editors that know YAML help with it once `sqlanon schema -o {SCHEMA_FILE}` was called beside it."
    )


def shown_by_file(profile: Profile, options: ReadOptions | None) -> list[str]:
    """List what is drafted of the reading of a file beyond the options given, in sentences."""
    if profile.reading is None:
        return []
    given, drafted = (options or ReadOptions()).given(), profile.reading.options.given()
    more = [key for key in drafted if key not in ("header", "names") and drafted[key] != given.get(key)]
    sentences = []
    if "header" in drafted and "header" not in given:
        sentences.append("The first line reads like data, so that header is false: give the columns names.")
    if more:
        sentences.append(f"The file shows {' and '.join(more)} (source): look whether it is right.")
    return sentences


def _read(profile: Profile, options: ReadOptions | None) -> str:
    """Describe the reading of the file, as comments."""
    lines = [*profile.reading.lines(), *shown_by_file(profile, options)] if profile.reading is not None else []
    more = "# Columns that are not named here were read as they are: in the type given beside each, or as text.\n"
    return "".join(f"# {comment(line)}\n" for line in lines) + (more if len(lines) > 1 else "")


def _places(source_url: str | None, table: str, reading: FileReading | None, *, is_file: bool) -> str:
    place, note, dialect = "", "", None
    if source_url is not None:
        url, dialect = written(source_url), find_dialect(source_url)
        if holds_secret(without_references(url)):
            url, note = f"${{{URL_VARIABLE}}}", f"    # the URL holds a password: set {URL_VARIABLE} to it"
        place = f"url: {quoted(url)}, "
    catalog = "" if dialect is None or dialect.keeps_catalog else f"\n{_catalog(dialect.label)}"
    if not is_file:
        release = f"table: {quoted(_released(table))}"
        return f"source:  {{{place}table: {quoted(table)}}}{note}\nrelease: {{{release}}}{catalog}"
    given = {} if reading is None else reading.options.given()
    how = "".join(f", {key}: {json.dumps(value)}" for key, value in given.items())
    is_directory = dialect is not None and dialect.writes_directories
    release = f"file: {_quoted_path(_released_file(table, is_directory))}"
    return f"source:  {{{place}file: {_quoted_path(table)}{how}}}{note}\nrelease: {{{release}}}{catalog}"


def _catalog(engine: str) -> str:
    """The key without which there is no place for records of runs."""
    return f'catalog: {{url: "duckdb:///catalog.duckdb"}}    # or PostgreSQL: {engine} keeps no records of runs'


def _trust(profile: Profile) -> str:
    """The key without which reading such a source is refused."""
    return (
        "\ntrust: owner    # code of the source's owner runs with the rights of who reads"
        if profile.trusts_owner
        else ""
    )


def _subject(profile: Profile) -> str:
    """The key that a release of rows needs where identifiers repeat, as a comment."""
    if not profile.repetition.columns:
        return ""
    names = "\n".join(f"#   {comment(str(column))}" for column in profile.repetition.columns)
    return (
        f"# Rows are not persons where an identifier repeats:\n{names}\n"
        "# The models count rows, so that a class of k rows may be of fewer persons than k, or of one. Best make a\n"
        "# view with one row a person, and draft a policy for it. To release rows nevertheless, uncomment this line:\n"
        "# subject: none"
    )


def _algorithm(profile: Profile, source_url: str | None) -> str:
    """The algorithm; where most quasi-identifiers are numbers and all have centres, also another, as a comment.

    The other one is named only if the source's database carries it out.
    """
    dialect = EMBEDDED if source_url is None else find_dialect(source_url)
    quasi = profile.named(Role.QUASI_IDENTIFIER)
    numbers = [facts for facts in quasi if facts.column.kind.is_numeric]
    centred = all(facts.column.kind.is_nominal for facts in quasi if facts not in numbers)
    able = dialect is not None and dialect.carries_out(Recodes.CLUSTERS)
    if not able or 2 * len(numbers) <= len(quasi) or not centred or any(facts.nulls for facts in numbers):
        return "algorithm: {name: mondrian}\n"
    return (
        "algorithm: {name: mondrian}\n"
        "# Most quasi-identifiers are numbers. For readers who compute with them, the next one shows the means of\n"
        "# similar rows in place of ranges. It takes no hierarchy, bottom or top: leave these out above.\n"
        "# algorithm: {name: microaggregation}\n"
    )


def _released_file(file: str, is_directory: bool) -> str:
    """The file's name with `_released`, in the same directory and, where it can be written, of the same format.

    A name with references to the environment keeps them, unless its ending is in one.
    is_directory: a directory of Parquet files is written.
    """
    if isinstance(file, Expanded) and PurePath(file).name == PurePath(file.written).name:
        named = _released_file(str(file), is_directory)
        return Expanded(named, str(PurePath(file.written).with_name(PurePath(named).name)))
    if file == STANDARD_INPUT:
        return "released.csv"
    path = PurePath(file if "://" not in file else PurePath(file).name)  # files are written on this machine
    stem = re.sub(r"[*?\[\]]+", "", path.stem.split(".")[0]) or "files"
    if is_directory:
        return str(path.with_name(f"{stem}_released.parquet"))
    endings = "".join(_WRITTEN.get(suffix.lower(), suffix) for suffix in path.suffixes)
    return str(path.with_name(f"{stem}_released{endings}"))


def _released(table: str) -> str:
    """The table's name with `_released`, in the same schema."""
    source = Relation.parse(table)
    name = source.name
    while len((name + "_released").encode()) > MAX_IDENTIFIER_BYTES:
        name = name[:-1]
    return ".".join(_sql_name(part) for part in source.sibling(type(source.name)(name + "_released")).parts)


def _sql_name(part: str) -> str:
    """Write a part of a name as it was written: in quotes, where it had or needs some."""
    plain = re.fullmatch(r"\w+", part) and (isinstance(part, Unquoted) or part == part.lower())
    return part if plain else '"' + part.replace('"', '""') + '"'


def column_line(
    profile: Profile, facts: ColumnFacts, kept_as: Role | None = None, costs: DraftCosts | None = None
) -> str:
    """Write the line of a column; kept_as: the role in place of one that models or searches are about."""
    proposal = profile.proposals[facts.name]
    if kept_as is not None and proposal.role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE):
        proposal = Proposal(kept_as, Basis.NAME, "about no person")
    hierarchy = draft_hierarchy(facts) + _limits(facts) if proposal.role is Role.QUASI_IDENTIFIER else ""
    doubt = "?" if proposal.basis is Basis.CAUTION else ""
    line = f"  {key_of(facts.name)}: {{role: {proposal.role.value}{hierarchy}}}"
    outliers = _outliers(facts) if _limits(facts) else ""
    forms = other_forms(facts) if hierarchy else ""
    forms += remarks.singled_out(facts, proposal.role)
    read = _as_read(profile, facts.name)
    remark = f"{_facts(facts)}; {proposal.reason}{doubt}{read}{outliers}{forms}{remarks.column(costs, facts.name)}"
    return f"{line}    # {remark}"


def _as_read(profile: Profile, name: str) -> str:
    """Say of a column of a file that it is text for lack of a hint."""
    columns = profile.reading.columns if profile.reading is not None else ()
    return next((f"; read as {comment(one.hint)}" for one in columns if one.name == name and one.hint is not None), "")


def _facts(facts: ColumnFacts) -> str:
    about = "" if facts.exact else "about "
    nulls = f", {facts.nulls:,} NULL" if facts.nulls else ""
    return f"{facts.column.kind.value}, {about}{facts.distinct:,} distinct{nulls}, {percent(facts.unique_share)} unique"


def _limits(facts: ColumnFacts) -> str:
    """Bottom and top coding where the ends are rare: an outlier would show in the labels of its class."""
    bottom = f", bottom: {{quantile: {RARE:g}}}" if facts.rare_bottom else ""
    return bottom + (f", top: {{quantile: {1 - RARE:g}}}" if facts.rare_top else "")


def _outliers(facts: ColumnFacts) -> str:
    ends = [end for end, is_rare in (("least", facts.rare_bottom), ("greatest", facts.rare_top)) if is_rare]
    return f"; its {' and '.join(ends)} {percent(RARE)} span more than the rest, and are coded as one"


def key_of(name: str) -> str:
    """Write a name as a key of YAML."""
    plain = _PLAIN.fullmatch(name) and name.lower() not in _WORDS_OF_YAML
    return name if plain else quoted(name)


def _quoted_path(path: str) -> str:
    return quoted(written(path))


def choose_k(rows: int) -> int:
    """The k for a table of so many rows: no more than it has, and never 1, which protects nobody."""
    return max(2, min(rows, next(k for least, k in reversed(K_FROM) if rows >= least)))


def draft_models(profile: Profile, costs: DraftCosts | None) -> list[str]:
    """The lines of the models."""
    k = choose_k(profile.rows)
    among = f"each row is among {k - 1} others or more; the more rows a table has, the less a larger k loses"
    models = [f"  - {{model: k-anonymity, k: {k}}}    # k for {profile.rows:,} rows: {among}{_alone(costs)}"]
    return models + [model_line(facts, "", costs) for facts in profile.named(Role.SENSITIVE)]


def _alone(costs: DraftCosts | None) -> str:
    if costs is None or costs.k_alone is None:
        return ""
    return f"; alone it costs GCP {percent(costs.k_alone.loss)} ({costs.k_alone.classes:,} classes)"


def model_line(facts: ColumnFacts, table: str = "", costs: DraftCosts | None = None) -> str:
    """Write the line of a sensitive column's model; table: what its name begins with among several tables."""
    name, attribute = comment(table + facts.name), quoted(table + facts.name)
    if facts.column.kind is Kind.OTHER:
        return f"  # no model for {name}: values of its type are not compared; cast it in the source"
    if facts.distinct < 2:  # NULL adds no diversity
        where = "every row" if not facts.nulls else "every row that has a value"
        return f"  # no model for {name}: it is the same in {where}"
    if facts.distinct == 2:
        line = f"  - {{model: t-closeness, attribute: {attribute}, distance: equal, t: {CLOSENESS}}}"
        return f"{line}    # it has 2 values, so that l-diversity would want both in every class{_cost(facts, costs)}"
    l_value = min(DIVERSITY, facts.distinct - 1)
    line = f"  - {{model: distinct-l-diversity, attribute: {attribute}, l: {l_value}}}"
    return f"{line}    # {_advice(facts)}{_cost(facts, costs)}"


def _cost(facts: ColumnFacts, costs: DraftCosts | None) -> str:
    """Say what the model costs: GCP and classes with and without it."""
    without = None if costs is None else costs.without_model.get(facts.name)
    if costs is None or costs.draft is None or without is None:
        return ""
    dear = costs.draft.loss - without.loss >= DEAR
    verdict = "; it costs much: think of a weaker one, or of columns to leave out" if dear else ""
    return f"; with it {_attempt_text(costs.draft)}, without it {_attempt_text(without)}{verdict}"


def _attempt_text(one: Attempt) -> str:
    return f"GCP {percent(one.loss)} ({one.classes:,} classes)"


def _advice(facts: ColumnFacts) -> str:
    if facts.column.kind.is_numeric:
        return "stronger: variance-diversity, or t-closeness with distance: ordered"
    return "stronger: recursive-l-diversity, or t-closeness"
