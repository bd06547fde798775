"""Drafts a policy from a profile: YAML that loads as it stands, every column in it, with the facts as comments."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import PurePath

from sqlanon.column_names import words_of
from sqlanon.engines.base import Kind
from sqlanon.engines.files import STANDARD_INPUT
from sqlanon.engines.reading import ReadOptions
from sqlanon.engines.urls import redacted
from sqlanon.policy import SET_LIMITS, Role
from sqlanon.profile.facts import RARE, Basis, ColumnFacts, Profile
from sqlanon.profile.proposal import is_postal
from sqlanon.sql import MAX_IDENTIFIER_BYTES, Relation

K = 5
DIVERSITY = 3
URL_VARIABLE = "SQLANON_URL"
SCHEMA_FILE = "policy.schema.json"  # what `sqlanon schema` is to write for editors
PAIRS_SHOWN = 5

_WRITTEN = {  # what is read but not written, and what is written in its place
    **dict.fromkeys((".tsv", ".json", ".jsonl", ".ndjson", ".xlsx"), ".csv"),
    ".zst": ".gz",
}

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[ -][A-Za-z0-9_]+)*")
_WORDS_OF_YAML = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def propose_policy(profile: Profile, source_url: str | None, table: str, options: ReadOptions | None = None) -> str:
    """The draft; without a URL, `table` is a file that DuckDB reads. A URL that holds a password is not written.

    options: how the file is to be read, where that was given.
    """
    sections = [
        _heading(profile, table),
        _read(profile) + _places(source_url, table, options or ReadOptions()),
        _subject(profile),
        "attributes:\n" + "\n".join(_attribute(profile, facts) for facts in profile.columns),
        _combinations(profile),
        "privacy:\n" + "\n".join(_models(profile)),
        "algorithm: {name: mondrian}\nsuppression: 0.0    # the largest share of rows that may be left out",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _heading(profile: Profile, table: str) -> str:
    estimated = "" if profile.exact else " What is marked `about` is estimated."
    return (
        f"# yaml-language-server: $schema={SCHEMA_FILE}\n"
        f"# A draft for {_comment(table)}: {profile.rows:,} rows, {len(profile.columns)} columns.{estimated}\n"
        "# Every role is a proposal: look at each, then run `sqlanon check` on this file.\n"
        "# Roles: identifier (never leaves), quasi-identifier (others may know it: generalized),\n"
        "#        sensitive (kept, protected by the models), insensitive (kept).\n"
        f"# Editors that know YAML help with it once `sqlanon schema -o {SCHEMA_FILE}` was called beside it."
    )


def _read(profile: Profile) -> str:
    """How the file was read, as comments."""
    lines = profile.reading.lines() if profile.reading is not None else []
    more = "# Columns that are not named here were read as they are: in the type given beside each, or as text.\n"
    return "".join(f"# {_comment(line)}\n" for line in lines) + (more if len(lines) > 1 else "")


def _places(source_url: str | None, table: str, options: ReadOptions) -> str:
    if source_url is None:
        given = {key: value for key, value in asdict(options).items() if value != asdict(ReadOptions())[key]}
        said = "".join(f", {key}: {json.dumps(value)}" for key, value in given.items())
        return (
            f"source:  {{file: {_quoted_path(table)}{said}}}\nrelease: {{file: {_quoted_path(_released_file(table))}}}"
        )
    url, note = source_url.replace("$", "$$"), ""
    if redacted(source_url) != source_url:
        url, note = f"${{{URL_VARIABLE}}}", f"    # the URL holds a password: set {URL_VARIABLE} to it"
    source = f"source:  {{url: {quoted(url)}, table: {quoted(table)}}}{note}"
    return f"{source}\nrelease: {{table: {quoted(_released(table))}}}"


def _subject(profile: Profile) -> str:
    """The key that a release of rows needs where identifiers repeat, as a comment."""
    if not profile.repetition.columns:
        return ""
    names = "\n".join(f"#   {_comment(str(column))}" for column in profile.repetition.columns)
    return (
        f"# Rows are not persons where an identifier repeats:\n{names}\n"
        "# The models count rows, so that a class of k rows may be of fewer persons than k, or of one. Best make a\n"
        "# view with one row a person, and draft a policy for it. To release rows nevertheless, uncomment this line:\n"
        "# subject: none"
    )


def _released_file(file: str) -> str:
    """The file's name with `_released`, in the same directory and, where it can be written, of the same format."""
    if file == STANDARD_INPUT:
        return "released.csv"
    path = PurePath(file)
    endings = "".join(_WRITTEN.get(suffix.lower(), suffix) for suffix in path.suffixes)
    stem = re.sub(r"[*?\[\]]+", "", path.stem.split(".")[0]) or "files"
    return str(path.with_name(f"{stem}_released{endings}"))


def _released(table: str) -> str:
    """The table's name with `_released`, in the same schema."""
    source = Relation.parse(table)
    name = source.name
    while len((name + "_released").encode()) > MAX_IDENTIFIER_BYTES:
        name = name[:-1]
    return ".".join(_sql_name(part) for part in source.sibling(name + "_released").parts)


def _sql_name(part: str) -> str:
    return part if re.fullmatch(r"\w+", part) else '"' + part.replace('"', '""') + '"'


def _attribute(profile: Profile, facts: ColumnFacts) -> str:
    proposal = profile.proposals[facts.name]
    hierarchy = _hierarchy(facts) + _limits(facts) if proposal.role is Role.QUASI_IDENTIFIER else ""
    doubt = "?" if proposal.basis is Basis.CAUTION else ""
    line = f"  {_key(facts.name)}: {{role: {proposal.role.value}{hierarchy}}}"
    return f"{line}    # {_facts(facts)}; {proposal.reason}{doubt}{_outliers(facts) if _limits(facts) else ''}"


def _facts(facts: ColumnFacts) -> str:
    about = "" if facts.exact else "about "
    nulls = f", {facts.nulls:,} NULL" if facts.nulls else ""
    return (
        f"{facts.column.kind.value}, {about}{facts.distinct:,} distinct{nulls}, {_percent(facts.unique_share)} unique"
    )


def _hierarchy(facts: ColumnFacts) -> str:
    kind = facts.column.kind
    if kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        born = {"birth", "born", "dob", "birthday", "birthdate"}.intersection(words_of(facts.name))
        return ", hierarchy: {date: [month, year, decade]}" if born else ", hierarchy: {date: [month, quarter, year]}"
    fixed = facts.shortest == facts.longest is not None and facts.all_digits and (facts.longest or 0) >= 4
    if kind is Kind.TEXT and (is_postal(facts.name) or fixed):
        return ", hierarchy: {mask: right}"
    if kind is Kind.TEXT and facts.distinct > SET_LIMITS["list"]:
        return ", sets: auto"
    return ""


def _limits(facts: ColumnFacts) -> str:
    """Bottom and top coding where the ends are rare: an outlier would show in the labels of its class."""
    bottom = f", bottom: {{quantile: {RARE:g}}}" if facts.rare_bottom else ""
    return bottom + (f", top: {{quantile: {1 - RARE:g}}}" if facts.rare_top else "")


def _outliers(facts: ColumnFacts) -> str:
    ends = [end for end, is_rare in (("least", facts.rare_bottom), ("greatest", facts.rare_top)) if is_rare]
    return f"; its {' and '.join(ends)} {_percent(RARE)} span more than the rest, and are coded as one"


def _combinations(profile: Profile) -> str:
    if profile.combination is None:
        return "# No column was taken for a quasi-identifier: a release needs at least one."
    about = "" if profile.exact else "about "
    lines = [
        "# How identifying the proposed quasi-identifiers are together: the share of rows alone with their values.",
        f"#   all {len(profile.combination.columns)}: {about}{_percent(profile.combination.unique_share)}",
    ]
    for pair in profile.pairs[:PAIRS_SHOWN]:
        names = " + ".join(_comment(name) for name in pair.columns)
        lines.append(f"#   {names}: {about}{_percent(pair.unique_share)}")
    return "\n".join(lines)


def _models(profile: Profile) -> list[str]:
    models = [f"  - {{model: k-anonymity, k: {max(1, min(K, profile.rows))}}}"]
    for facts in profile.named(Role.SENSITIVE):
        attribute = quoted(facts.name)
        if facts.column.kind is Kind.OTHER:
            models.append(
                f"  # no model for {_comment(facts.name)}: values of its type are not compared; cast it in a view"
            )
        elif facts.distinct < 2:  # NULL adds no diversity
            where = "every row" if not facts.nulls else "every row that has a value"
            models.append(f"  # no model for {_comment(facts.name)}: it is the same in {where}")
        else:
            l_value = min(DIVERSITY, facts.distinct)
            models.append(f"  - {{model: distinct-l-diversity, attribute: {attribute}, l: {l_value}}}{_advice(facts)}")
    return models


def _advice(facts: ColumnFacts) -> str:
    if facts.column.kind.is_numeric:
        return "    # stronger: variance-diversity, or t-closeness with distance: ordered"
    return "    # stronger: recursive-l-diversity, or t-closeness"


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return "under 0.1 %"
    return f"{100 * share:.1f} %" if share < 1 else "100 %"


def _key(name: str) -> str:
    plain = _PLAIN.fullmatch(name) and name.lower() not in _WORDS_OF_YAML
    return name if plain else quoted(name)


def quoted(text: str) -> str:
    """A double-quoted YAML text on one line."""
    escaped = json.dumps(text, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda found: f"\\u{ord(found[0]):04x}", escaped)


def _quoted_path(path: str) -> str:
    return quoted(path.replace("$", "$$"))


def _comment(text: str) -> str:
    """Text that can't end a comment's line."""
    return "".join(char if char.isprintable() else " " for char in text)
