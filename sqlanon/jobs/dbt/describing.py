"""Contents of a release's columns, in words for those who read the project's documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlanon.plan.checks import released_names
from sqlanon.policy import AttributeSection, Policy, Role, Show

_KEPT = {
    Role.SENSITIVE: "Sensitive column `{name}`, as it is in the source.",
    Role.INSENSITIVE: "Column `{name}`, as it is in the source.",
}
_SHOWN = {
    Show.MEAN: "the mean of the values of the row's class",
    Show.MIDPOINT: "the middle between the least and the greatest value of the row's class",
    Show.RANGE: "the range of the values of the row's class",
}
_HIERARCHIES = {
    "mask": "a value, or its beginning or end with `*` for what is hidden",
    "date": "a day, or the period that it lies in",
    "intervals": "a number, or the interval that it lies in",
    "csv": "a value, or the group that it belongs to",
    "mapping": "a value, or the group that it belongs to",
    "suppress": "a value, or `*`",
}


def describe_columns(policy: Policy) -> Mapping[str, str]:
    """A sentence for every column of the release, by its name; no value of the data."""
    return {column: text for name, a in policy.attributes.items() for column, text in _described(name, a)}


def _described(name: str, attribute: AttributeSection) -> Iterator[tuple[str, str]]:
    columns = released_names(name, attribute)
    if attribute.role is not Role.QUASI_IDENTIFIER:  # an identifier has no columns
        yield from ((column, _KEPT[attribute.role].format(name=name)) for column in columns)
        return
    for column, shown in zip(columns, _shown(attribute), strict=True):
        yield column, f"Quasi-identifier `{name}`, generalized: {shown}."


def _shown(attribute: AttributeSection) -> tuple[str, ...]:
    """Describe the content of each column of a quasi-identifier."""
    if attribute.show is Show.BOUNDS:
        return "the least value of the row's class", "the greatest value of the row's class"
    if attribute.show is not Show.LABEL:
        return (_SHOWN[attribute.show],)
    hierarchy = attribute.hierarchy
    kind = None if hierarchy is None else next((k for k in _HIERARCHIES if getattr(hierarchy, k) is not None), None)
    return (_HIERARCHIES[kind] if kind else "a value, a range or a set of values",)
