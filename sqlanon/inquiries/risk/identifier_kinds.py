"""Kinds of identifiers: the eighteen of HIPAA's safe harbor (45 CFR 164.514(b)(2)), by names of columns and by values.

Names of people are known by the name of their column, and by word lists where a library with some is installed.
"""

from __future__ import annotations

from sqlanon.plan.column_names import mentions, names_a_person, words_of

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
