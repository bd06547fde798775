"""Suppression and generalization of single cells."""

from sqlanon.support.methods import Method

METHOD = Method(
    __name__,
    place=5,
    algorithms={"local-suppression": "policy:LocalSuppression", "cell-generalization": "policy:CellGeneralization"},
    searches={"local-suppression": "search:CellSuppression", "cell-generalization": "search:CellClimbing"},
)
