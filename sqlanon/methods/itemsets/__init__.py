"""Sets of items: the items of persons, generalized along a hierarchy so that any m of them are those of k persons."""

from sqlanon.support.methods import Method

METHOD = Method(
    __name__,
    place=11,
    algorithms={"apriori": "policy:Apriori"},
    searches={"apriori": "search:ItemsetSearch"},
    rules="policy:itemset_problems",
)
