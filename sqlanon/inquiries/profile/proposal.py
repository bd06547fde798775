"""Proposes a role for a column from its name and its facts; where both leave doubt, the more protective one."""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.engines.columns import Kind
from sqlanon.inquiries.profile.column_facts import Basis, ColumnFacts, Proposal
from sqlanon.inquiries.profile.writing import percent
from sqlanon.inquiries.risk.identifiers import DIRECT, IDENTIFYING, KIND_WORDS, NAMES
from sqlanon.plan.checks import MAX_QUASI_IDENTIFIERS
from sqlanon.plan.column_names import mentions, names_a_key, names_a_person, words_of
from sqlanon.policy import Role

# Words of column names, lower case and without a plural's s; several words in a row are joined by a space.
IDENTIFIERS = "|".join(IDENTIFYING.values())
SENSITIVE = """
disease|diagnosis|diagnose|diagnostic|icd|condition|illness|symptom|disorder|syndrome|hiv|cancer|disability|health|
cause|death|prognosis|treatment|therapy|medication|drug|prescription|procedure|surgery|allergy|blood|genome|genetic|
lab|test|biopsy|salary|income|wage|pay|earning|bonus|debt|loan|mortgage|balance|credit|spending|expenditure|charge|cost|
payment|wealth|net worth|religion|faith|politic|political|party|vote|union|sexual|orientation|crime|offence|offense|
conviction|sentence|arrest|violation|verdict|score|grade|rating|password|secret|pregnant|addiction|alcohol|suicide
"""
QUASI_IDENTIFIERS = """
age|birth|born|birthday|birthdate|dob|yob|zip|zipcode|postcode|postal|plz|city|town|village|county|district|state|
province|region|country|nation|nationality|citizenship|native|location|place|sex|gender|race|ethnic|ethnicity|
ancestry|marital|married|marriage|spouse|education|school|degree|schooling|college|university|occupation|job|profession|
employer|employment|work|workclass|industry|sector|department|title|rank|branch|language|household|child|children|kid|
family|relationship|height|weight|bmi|admission|admitted|admit|discharge|discharged|visit|hired|hire|joined|military|
veteran|vehicle|hour|tenure
"""
POSTAL = {"zip", "zipcode", "postcode", "postal", "plz"}

UNIQUE = 0.95  # from this share of rows on, a column tells nearly every row apart
KEY_LIKE = 0.5
MANY_VALUES = 100  # from so many on, or this share of the rows, a class would not bear the values of a column
MANY_SHARE = 0.1
FREE_TEXT = 0.5
LONG_TEXT = 80  # characters

_ONE_TOO_MANY = Proposal(
    Role.OMIT, Basis.CAUTION, f"others may know it, and only {MAX_QUASI_IDENTIFIERS} quasi-identifiers can be searched"
)


def propose_roles(facts: Sequence[ColumnFacts]) -> dict[str, Proposal]:
    """Propose a role for each column of a table; no more of them are quasi-identifiers than a search takes.

    Those whose names tell that others may know them go first, then those with fewer values.
    """
    proposals = {one.name: propose(one) for one in facts}
    quasi = [one for one in facts if proposals[one.name].role is Role.QUASI_IDENTIFIER]
    ranked = sorted(quasi, key=lambda one: (proposals[one.name].basis is not Basis.NAME, one.distinct))
    beyond = {one.name for one in ranked[MAX_QUASI_IDENTIFIERS:]}
    return proposals | {one.name: _ONE_TOO_MANY for one in quasi if one.name in beyond}


def propose(facts: ColumnFacts) -> Proposal:
    """The role proposed for a column by itself."""
    by_name = _by_name(facts)
    if by_name is not None and by_name.role is Role.IDENTIFIER:
        return by_name
    if by_name is not None and facts.identifies is not None and facts.identifies[0] == NAMES:
        return by_name  # places and things are named after people
    return _by_patterns(facts) or by_name or _by_values(facts)


def _by_patterns(facts: ColumnFacts) -> Proposal | None:
    """An identifier, where the values look like such, whatever the column is called."""
    if facts.identifies is None or facts.identifies[0] not in DIRECT or facts.groups < 2:
        return None
    kind, share = facts.identifies
    return Proposal(Role.IDENTIFIER, Basis.VALUES, f"{percent(share)} of its values look like {KIND_WORDS[kind]}")


def is_postal(name: str) -> bool:
    """Tell whether the name is that of a postal code."""
    return bool(POSTAL.intersection(words_of(name)))


def _by_name(facts: ColumnFacts) -> Proposal | None:
    words = words_of(facts.name)
    if mentions(words, IDENTIFIERS):
        return Proposal(Role.IDENTIFIER, Basis.NAME, "its name is that of an identifier")
    if names_a_key(facts.name) and facts.unique_share >= KEY_LIKE and _can_generalize(facts):
        return Proposal(Role.IDENTIFIER, Basis.NAME, "named like a key, and nearly one value a row")
    if names_a_person(facts.name) and facts.distinct != 1:
        return Proposal(Role.IDENTIFIER, Basis.NAME, "named like the key of a person, who has several rows")
    if not _can_generalize(facts):
        return None
    if mentions(words, SENSITIVE) and facts.distinct:
        return Proposal(Role.SENSITIVE, Basis.NAME, "its name is that of something sensitive")
    if mentions(words, QUASI_IDENTIFIERS):
        return Proposal(Role.QUASI_IDENTIFIER, Basis.NAME, "its name is that of something others may know")
    if names_a_key(facts.name) and 0 < min(MANY_VALUES, facts.rows * MANY_SHARE) <= facts.distinct:
        return Proposal(Role.IDENTIFIER, Basis.NAME, "named like a key, with more values than a class would bear")
    if "name" in words:
        return _name_of_something(facts)
    return None


def _name_of_something(facts: ColumnFacts) -> Proposal:
    """`name` alone is a person's; `product_name` with few values is a thing's."""
    if len(words_of(facts.name)) == 1 or facts.distinct * 10 > facts.rows:
        return Proposal(Role.IDENTIFIER, Basis.NAME, "its name is that of an identifier")
    return Proposal(Role.QUASI_IDENTIFIER, Basis.CAUTION, "a name that many rows share")


def _can_generalize(facts: ColumnFacts) -> bool:
    return facts.column.kind is not Kind.OTHER


def _by_values(facts: ColumnFacts) -> Proposal:
    if not _can_generalize(facts):
        return Proposal(Role.OMIT, Basis.CAUTION, "values of this type cannot be generalized; cast it in the source")
    if facts.distinct == 0:
        return Proposal(Role.OMIT, Basis.CAUTION, "no row has a value, which could tell what it holds")
    if facts.distinct == 1 and facts.nulls == 0 and facts.rows > 1:
        return Proposal(Role.INSENSITIVE, Basis.VALUES, "the same in every row")
    if facts.column.kind is Kind.TEXT and (facts.longest or 0) > LONG_TEXT:
        return Proposal(Role.OMIT, Basis.CAUTION, "free text may name people")
    if _is_countable(facts) and facts.unique_share >= UNIQUE:
        return Proposal(Role.IDENTIFIER, Basis.VALUES, "nearly one value a row")
    if facts.column.kind is Kind.UUID:
        return Proposal(Role.OMIT, Basis.VALUES, "a key, which says nothing by itself")
    if facts.column.kind is Kind.TEXT and facts.unique_share >= FREE_TEXT:
        return Proposal(Role.OMIT, Basis.CAUTION, "free text may name people")
    return Proposal(Role.QUASI_IDENTIFIER, Basis.CAUTION, "others may know it; say insensitive if nobody can")


def _is_countable(facts: ColumnFacts) -> bool:
    """Tell whether being unique makes a key of a column: measurements and times are often unique without being one."""
    return facts.column.kind in (Kind.TEXT, Kind.INTEGER, Kind.UUID)
