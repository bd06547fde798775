"""Words in names of columns, and signs that a column is a key, or the key of a person."""

from __future__ import annotations

import re

KEYS = {"id", "uuid", "guid", "key", "number", "num", "nr", "no", "code", "ref", "reference", "pk", "serial", "token"}
PERSONS = """
person|patient|customer|client|user|member|employee|student|pupil|subject|citizen|resident|respondent|participant|
individual|insured|taxpayer|subscriber|beneficiary|donor|applicant|candidate|passenger|driver|worker|guest|inmate|
prisoner|voter|victim|suspect|caller|staff|personnel|people
"""


def words_of(name: str) -> list[str]:
    """List the words of a column's name: `patientZipCode` and `PATIENT_ZIP_CODES` give patient, zip, code."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])", " ", name)
    return [_singular(word.lower()) for word in re.split(r"[\W_]+", spaced) if word]


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "is", "us")) else word


def mentions(words: list[str], vocabulary: str) -> bool:
    """Tell whether a word, or two in a row, are in a vocabulary: words with `|` between them."""
    phrases = set(vocabulary.replace("\n", "").split("|"))
    return any(" ".join(words[i : i + length]) in phrases for i in range(len(words)) for length in (1, 2))


def names_a_key(name: str) -> bool:
    """Tell whether a column is named like a key: `visit_id`, `orderNumber`."""
    return bool(KEYS.intersection(words_of(name)[-1:]))


def names_a_person(name: str) -> bool:
    """Tell whether a column is named like the key of a person: `patient_id`, `customerNo`, `userid`."""
    *_, before, last = ["", "", *words_of(name)]
    joined = (last.removesuffix(key) for key in KEYS if last.endswith(key))
    return (last in KEYS and mentions([before], PERSONS)) or any(mentions([word], PERSONS) for word in joined)
