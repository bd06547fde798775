"""Columns that look like identifiers: by their names, and by patterns that the database counts in one scan.

Check digits are checked: of cards (Luhn, ISO/IEC 7812-1), of IBANs (mod 97-10, ISO 13616), of NHS numbers (mod 11). The
evidence is the share of a column's values that match, never a value.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.plan.column_names import mentions, names_a_person, words_of
from sqlanon.plan.measurements import in_part, portions
from sqlanon.results.risk import Evidence, IdentifierSign, TableRisk
from sqlanon.sql import Identifier, Relation, Text

# Words of column names, lower case and without a plural's s; several words in a row are joined by a space.
IDENTIFYING = {
    "name": (
        "first name|last name|surname|forename|given name|family name|full name|maiden name|middle name|user name|"
        "username|login|nickname|initials|signature"
    ),
    "address": "street|house number|address|latitude|longitude|lat|lon|lng|gps",
    "phone": "phone|telephone|mobile|cell",
    "fax": "fax",
    "email": "email|e mail|mail",
    "national-id": "ssn|social security|national id|passport|tax id|tin|nhs",
    "medical-record": "mrn|medical record",
    "health-plan": "insurance number|insurance id|health plan|beneficiary",
    "account": "bic|account",
    "iban": "iban",
    "card": "card|credit card",
    "license": "license|licence|certificate number|certificate no|certificate id",
    "vehicle": "licence plate|plate|vin",
    "device": "mac|imei|serial number|serial no|device serial|device id",
    "url": "url",
    "ip-address": "ip",
    "biometric": "biometric|fingerprint|finger print|voiceprint|voice print|faceprint|retina",
    "photo": "photo|photograph|portrait",
}


"""Words for columns that tell people apart by themselves, by kind."""


TELLING = {
    "date": "birth|birthday|birthdate|dob|admission|admitted|admit|discharge|discharged|death|died",
    "place": "zip|zipcode|postcode|postal|plz|city|town|village|county|district",
}


"""Words for columns that tell people apart together with others, by kind."""


PERSON_KEY = "person-key"


_DIGITS = "(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"


PATTERNS = {
    "email": ("email", "^[A-Za-z0-9._%+'-]+@[A-Za-z0-9-]+([.][A-Za-z0-9-]+)*[.][A-Za-z]{2,24}$"),
    "url": ("url", "^((https?|ftp)://|www[.])[^ ]+$"),
    "mac": ("device", "^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$"),
    "ip": ("ip-address", f"^({_DIGITS}[.]){{3}}{_DIGITS}$|^[0-9A-Fa-f]{{0,4}}(:[0-9A-Fa-f]{{0,4}}){{3,7}}$"),
    "iban": ("iban", "^[A-Za-z]{2}[0-9]{2}( ?[A-Za-z0-9]){11,30}$"),
    "card": ("card", "^[3-6][0-9]{3}([ -]?[0-9]){9,15}$"),
    "ssn": (
        "national-id",
        "^(00[1-9]|0[1-9][0-9]|[1-578][0-9]{2}|6[0-57-9][0-9]|66[0-57-9])-[0-9]{2}-[0-9]{4}$",
    ),
    "nhs": ("national-id", "^[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}$"),
    "date": (
        "date",
        "^[0-9]{4}[-/.][01]?[0-9][-/.][0-3]?[0-9]([ T].*)?$|^[0-3]?[0-9][-/.][0-3]?[0-9][-/.]([0-9]{2}|[0-9]{4})$",
    ),
    "phone": (
        "phone",
        "^([+][0-9][0-9 ()./-]{6,20}|[(][0-9]{2,5}[)][0-9 ./-]{5,15}|0[0-9]{1,5}[ /.-][0-9 ./-]{4,15}"
        "|[0-9]{2,4}([ .-][0-9]{2,4}){2,4})$",
    ),
}


"""Patterns with the kind of each, the strictest first: a column is of the first that half of its values match."""


CHECKED = ("iban", "card", "nhs")  # patterns whose values have check digits, which are checked too


OF_NUMBERS = ("card", "nhs")  # patterns that whole numbers may match


KIND_WORDS = {
    "email": "e-mail addresses",
    "url": "web addresses",
    "device": "hardware addresses",
    "ip-address": "IP addresses",
    "iban": "IBANs",
    "card": "card numbers",
    "national-id": "national identity numbers",
    "phone": "phone numbers",
    "date": "dates",
    "name": "names of people",
}


"""Kinds that values show, in words."""


DIRECT = KIND_WORDS.keys() - TELLING.keys()


"""Kinds that values show, and that are released to nobody."""


def kind_of(pattern: str) -> str:
    """The kind of a pattern; a kind that is known by a list of words is its own."""
    return PATTERNS[pattern][0] if pattern in PATTERNS else pattern


def kinds_by_name(name: str) -> tuple[str, ...]:
    """List the kinds of identifiers that a column is named like."""
    words = words_of(name)
    kinds = [kind for kind, vocabulary in {**IDENTIFYING, **TELLING}.items() if mentions(words, vocabulary)]
    if not kinds and words == ["name"]:
        kinds.append("name")
    return (*kinds, *([PERSON_KEY] if names_a_person(name) else []))


NAMES = "name"  # the pattern of values that begin and end with names of people


WORDS = "words"  # the pattern of values that may be names; others are not held against word lists


LEAST_NAMES = 20  # different ones of a column: black and white are surnames too


LEAST_SHARE = 0.5  # of values that match, for a column to be of a kind


EXACT_ROWS = 200_000  # of larger tables, about as many values are looked at


COLUMNS_A_STATEMENT = 25


LOOKED_UP_A_STATEMENT = 10  # of columns with check digits, or words to look up


_Shares = dict[str, float]


_LOOKED_FOR = {name: pattern for name, (_, pattern) in PATTERNS.items()} | {WORDS: "^[^0-9@/:_]{3,60}$"}


LEAST_LETTERS = 3  # of a name in ASCII: shorter ones are initials, codes and particles


_LISTS = ("first_names", "first_names_male", "first_names_female", "first_names_nonbinary", "last_names")


def find_identifiers(
    engine: Engine, table: Relation, columns: Sequence[Column], rows: int
) -> tuple[IdentifierSign, ...]:
    """List the columns that look like identifiers of a kind, by their names or by their values.

    rows: of the table, about; of a large one a part of each column's values is looked at, all rows of a value or none.
    """
    shares = measure_patterns(engine, table, columns, max(1, rows // EXACT_ROWS))
    return tuple(sign for column in columns for sign in _signs(column, shares.get(column.name, {})))


def with_identifiers(engine: Engine, table: Relation, risk: TableRisk) -> TableRisk:
    """List the columns that look like identifiers beside a table's risk; none of those that may not be read."""
    unreadable = engine.unreadable_columns(table)
    columns = [column for column in engine.columns(table) if column.name not in unreadable]
    return replace(risk, identifiers=find_identifiers(engine, table, columns, risk.rows))


def measure_patterns(
    engine: Engine, table: Relation, columns: Sequence[Column], modulus: int = 1
) -> Mapping[str, _Shares]:
    """Measure, for each column of texts or whole numbers that holds a value, the share of the values of each pattern.

    modulus: one of so many parts of the values is looked at.
    """
    looked_at = [column for column in columns if column.kind in (Kind.TEXT, Kind.INTEGER)]
    of_texts = [*PATTERNS, WORDS] if engine.traits.knows_words and known_names() else list(PATTERNS)
    wanted = {one.name: of_texts if one.kind is Kind.TEXT else list(OF_NUMBERS) for one in looked_at}
    shares = {
        name: shares
        for portion in portions(looked_at, COLUMNS_A_STATEMENT)
        for name, shares in _measure(engine, table, portion, wanted, modulus).items()
    }
    shaped = {name: [one for one, share in of.items() if one in CHECKED and share] for name, of in shares.items()}
    for portion in portions([one for one in looked_at if shaped.get(one.name)], LOOKED_UP_A_STATEMENT):
        for name, checked in _measure(engine, table, portion, shaped, modulus, checks_digits=True).items():
            shares[name] |= checked
    worded = [column for column in looked_at if shares.get(column.name, {}).pop(WORDS, 0) >= LEAST_SHARE]
    for portion in portions(worded, LOOKED_UP_A_STATEMENT):
        for name, share in _measure_names(engine, table, portion, modulus):
            shares[name][NAMES] = share
    return shares


def kind_by_values(shares: _Shares) -> tuple[str, float] | None:
    """The kind of the first pattern that enough values match, and their share; None where there is no such pattern."""
    return next(((kind_of(name), share) for name, share in shares.items() if share >= LEAST_SHARE), None)


def _measure_names(
    engine: Engine, table: Relation, columns: Sequence[Column], modulus: int
) -> Iterator[tuple[str, float]]:
    """Measure the shares of the values of columns that are names of people, where these are many different ones."""
    values = [Markup(Identifier(column.name)) for column in columns]
    counted = engine.query(
        "inquiries/risk/count_names",
        table=table,
        names=Text("\n".join(_in_encoding(known_names(), engine.text_encoding))),
        columns=[{"value": value, "sampled": in_part(engine, [value], modulus)} for value in values],
    )
    for place, looked_at, named, different in counted:
        if different >= LEAST_NAMES:
            yield columns[int(place)].name, int(named) / int(looked_at)


def _in_encoding(words: Sequence[str], encoding: str) -> list[str]:
    """List the words that an encoding has bytes for."""
    return [word for word in words if word.encode(encoding, "ignore").decode(encoding) == word]


def _measure(
    engine: Engine,
    table: Relation,
    columns: Sequence[Column],
    wanted: Mapping[str, Sequence[str]],
    modulus: int,
    *,
    checks_digits: bool = False,
) -> dict[str, _Shares]:
    """Measure the shares of the patterns that are wanted of each column.

    checks_digits: whether check digits must be right too, which costs a hundred times more to plan than the patterns.
    """
    values = [Markup(Identifier(column.name)) for column in columns]
    counts = iter(
        engine.query_one(
            "inquiries/risk/count_patterns",
            table=table,
            columns=[
                {
                    "value": value,
                    "sampled": in_part(engine, [value], modulus),
                    "patterns": [
                        {"name": name, "pattern": Text(_LOOKED_FOR[name]), "is_checked": checks_digits}
                        for name in wanted[column.name]
                    ],
                }
                for column, value in zip(columns, values, strict=True)
            ],
        )
    )
    measured: dict[str, _Shares] = {}
    for column in columns:
        present = int(next(counts))
        shares = {name: int(next(counts)) / max(1, present) for name in wanted[column.name]}
        if present < LEAST_NAMES:
            shares.pop(WORDS, None)
        if present:
            measured[column.name] = shares
    return measured


def _signs(column: Column, shares: _Shares) -> Iterator[IdentifierSign]:
    """The signs of one column, those by its name first."""
    named = kinds_by_name(column.name)
    by_values = kind_by_values(shares)
    for kind in named:
        of_kind = [share for name, share in shares.items() if kind_of(name) == kind]
        yield IdentifierSign(
            column.name, kind, Evidence(name=True, type=_is_type(column, kind), share=max(of_kind, default=None))
        )
    if by_values is not None and by_values[0] not in named and not (named and by_values[0] == NAMES):
        yield IdentifierSign(column.name, by_values[0], Evidence(name=False, type=False, share=by_values[1]))
    if column.kind.has_day and "date" not in named:
        yield IdentifierSign(column.name, "date", Evidence(name=False, type=True, share=None))


def _is_type(column: Column, kind: str) -> bool:
    return kind == "date" and column.kind.has_day


@functools.cache
def known_names() -> tuple[str, ...]:
    """The words of all names, in lower case; none where the library is not installed."""
    if importlib.util.find_spec("faker") is None:
        return ()
    words = {word.strip("()") for name in _names() for word in name.lower().split()} - {""}
    return tuple(sorted(word for word in words if len(word) >= LEAST_LETTERS or not word.isascii()))


def _names() -> Iterator[str]:
    package: Any = importlib.import_module("faker.providers.person")
    for module in pkgutil.iter_modules(package.__path__):
        provider = importlib.import_module(f"faker.providers.person.{module.name}").Provider
        for name in _LISTS:
            listed = getattr(provider, name, None)
            if isinstance(listed, Iterable):  # some are computed by an instance
                yield from (one for one in listed if isinstance(one, str))
