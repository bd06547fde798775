"""Randomization: changes of single values at random, and the reconstruction of their distribution."""

from sqlanon.support.methods import Method

METHOD = Method(
    __name__,
    place=7,
    algorithms={"randomize": "policy:Randomize"},
    guarantees={"randomization": "policy:RandomizationParameters"},
    rules="policy:randomized_problems",
    source="source:RandomDraw",
    check="source:check_randomized",
    audit="audit:audit_randomized",
    result="result:RandomizedResult",
    key="randomized",
    text="text:TEXTS",
    page="page:render_randomized",
    commands={"reconstruct_command": ("reconstruct",)},
)
