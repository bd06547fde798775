"""A row of the source as SQL: its values, their texts and labels, and the columns that a recoding makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from sqlanon.engines.dialects import dialect_named
from sqlanon.hierarchies.inline import has_keys, join_labels
from sqlanon.hierarchies.mask import kept_part, mask_label
from sqlanon.plan.checks import released_names
from sqlanon.policy import Hierarchy, Policy, Role
from sqlanon.release.labels import EVERYTHING
from sqlanon.rules.store import StoredRules
from sqlanon.rules.tables import RuleAttribute
from sqlanon.sql import Identifier, Text, expression, renderer
from sqlanon.values.comparing import is_short
from sqlanon.values.text import text_of


class RowSpelling:
    """SQL expressions of a SELECT about a row `s` of the source."""

    def __init__(self, stored: StoredRules, policy: Policy) -> None:
        self.attributes, self.policy = stored.attributes, policy
        self.dialect = dialect_named(str(stored.content["dialect"]))
        self.render = renderer(self.dialect.name)
        self._joined: dict[int, RuleAttribute] = {}

    def joins(self, *, keyed: bool = False) -> list[Markup]:
        """List the joins of the labels that were asked for; `keyed`, if keys are read there too."""
        return [self._join(attribute, keyed) for attribute in self._joined.values()]

    def columns(self, cells: dict[int, list[Markup]]) -> list[dict[str, Any]]:
        """The columns of the result in the policy's order."""
        numbers = {a.name: a.number for a in self.attributes}
        columns: list[dict[str, Any]] = []
        for name, attribute in self.policy.attributes.items():
            if attribute.role is Role.QUASI_IDENTIFIER:
                pairs = zip(released_names(name, attribute), cells[numbers[name]], strict=True)
                columns += [{"name": Identifier(released), "value": cell} for released, cell in pairs]
            elif attribute.role is not Role.IDENTIFIER:
                columns.append({"name": Identifier(name), "value": expression("s.{c}", c=Identifier(name))})
        return columns

    def kept(self) -> list[dict[str, Any]]:
        """The columns of the result that are the source's own."""
        roles = (Role.QUASI_IDENTIFIER, Role.IDENTIFIER)
        names = [name for name, attribute in self.policy.attributes.items() if attribute.role not in roles]
        return [{"name": Identifier(name), "value": expression("s.{c}", c=Identifier(name))} for name in names]

    def value(self, attribute: RuleAttribute) -> Markup:
        """The value of a row, or the limit that it is beyond: cuts lie between the limits, groups need not."""
        value = expression("s.{c}", c=Identifier(attribute.name))
        return value if attribute.height is None else attribute.limits.coded(self.render, value, attribute.column)

    def text(self, attribute: RuleAttribute) -> Markup:
        return text_of(self.render, self.value(attribute), attribute.kind, attribute.type)

    def label(self, attribute: RuleAttribute, level: int) -> Markup:
        """The label of a value at a level of its hierarchy."""
        assert attribute.height is not None
        if level == attribute.height:
            return Markup(Text(EVERYTHING))
        hierarchy = self._hierarchy(attribute)
        opened = [one for one in attribute.opened if one.level == level]
        if opened:
            label = self.text(attribute) if level == 0 else self._found(attribute, f"l{level}")
            whens = [expression("WHEN {l} THEN {s}", l=Text(one.label), s=Text(one.shown)) for one in opened]
            return expression("CASE {label} {whens} ELSE {label} END", label=label, whens=Markup(" ").join(whens))
        if level == 0:
            return self.text(attribute)
        if hierarchy.mask is not None:
            return mask_label(self.text(attribute), hierarchy.mask, attribute.height - level, level)
        label = self._found(attribute, f"l{level}")
        if hierarchy.unknown is None:
            return label
        return expression("coalesce({label}, {unknown})", label=label, unknown=Text(hierarchy.unknown))

    def key(self, attribute: RuleAttribute, level: int) -> Markup | None:
        """Write a cheaper stand-in for the label of a value at a level, if there is one; NULL for NULL alone."""
        if level == 0:
            return self.value(attribute) if is_short(attribute.column) else None
        hierarchy = self._hierarchy(attribute)
        if hierarchy.mask is not None:
            return self._kept(attribute, hierarchy.mask, level)
        if not has_keys(hierarchy, attribute.column):
            return None
        key = self._found(attribute, f"k{level}")
        return expression("CASE WHEN {value} IS NOT NULL THEN {key} END", value=self.value(attribute), key=key)

    def _kept(self, attribute: RuleAttribute, side: str, level: int) -> Markup:
        """Write the part of a value's text that a mask leaves."""
        assert attribute.height is not None
        return kept_part(self.text(attribute), side, attribute.height - level)

    def _found(self, attribute: RuleAttribute, name: str) -> Markup:
        """A column of what is joined to the row for an attribute; a value that a taxonomy lacks has NULL there."""
        self._joined[attribute.number] = attribute
        return expression("{alias}.{name}", alias=_alias(attribute), name=Identifier(name))

    def _join(self, attribute: RuleAttribute, keyed: bool) -> Markup:
        hierarchy, row = self._hierarchy(attribute), (attribute.column, self.value(attribute), self.text(attribute))
        return join_labels(self.render, hierarchy, *row, _alias(attribute), keyed=keyed)

    def _hierarchy(self, attribute: RuleAttribute) -> Hierarchy:
        hierarchy = self.policy.attributes[attribute.name].hierarchy
        assert hierarchy is not None
        return hierarchy


def _alias(attribute: RuleAttribute) -> Identifier:
    return Identifier(f"h{attribute.number}")


def listed(texts: Sequence[str]) -> Markup:
    """Texts as a list of literals."""
    return Markup(", ").join(Markup(Text(text)) for text in texts)
