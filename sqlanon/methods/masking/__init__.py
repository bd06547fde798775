"""Masking: rows as they are, of tables that hold no quasi-identifier, with identifiers masked or left out."""

from sqlanon.support.methods import Method

METHOD = Method(
    __name__,
    place=10,
    algorithms={"masking": "policy:CopyWithMasks"},
    rules="policy:masking_problems",
    source="source:MaskedRows",
    check="source:check_masking",
    audit="audit:audit_masked",
    result="result:MaskingResult",
    key="masking",
    text="text:TEXTS",
    page="page:render_masked",
)
