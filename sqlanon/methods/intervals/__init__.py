"""Ordered sets: the cuts of an attribute chosen over its whole order."""

from sqlanon.support.methods import Method

METHOD = Method(
    __name__,
    place=3,
    algorithms={"ordered-sets": "policy:OrderedSets"},
    searches={"ordered-sets": "search:OrderedSetSearch"},
)
