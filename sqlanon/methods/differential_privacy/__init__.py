"""Differential privacy: noisy counts, drawn on a budget."""

from sqlanon.support.methods import Method

METHOD = Method(
    __name__,
    place=6,
    algorithms={
        "diffgen": "policy:DiffGen",
        "contingency": "policy:Contingency",
        "marginals": "policy:Marginals",
        "mst": "policy:Mst",
    },
    guarantees={"differential-privacy": "policy:DifferentialPrivacy"},
    rules="policy_rules:private_problems",
    source="source:PrivateDraw",
    check="check:check_private",
    audit="audit:audit_private",
    result="result:PrivateResult",
    key="private",
    text="text:TEXTS",
    page="page:render_private",
    commands={"budget_command": ("budget",), "audit_command": ("audit",)},
)
