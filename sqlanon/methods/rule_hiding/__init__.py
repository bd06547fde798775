"""Hiding of association rules: single items are taken out of rows."""

from sqlanon.support.methods import Method

METHOD = Method(
    __name__,
    place=8,
    algorithms={"hide-rules": "policy:HideRules"},
    guarantees={"hidden-rules": "policy:HiddenRulesParameters"},
    rules="policy:hiding_problems",
    source="source:RuleHiding",
    check="source:check_hiding",
    audit="audit:audit_hidden_rules",
    result="result:HidingResult",
    key="hiding",
    text="text:TEXTS",
    page="page:render_hiding",
)
