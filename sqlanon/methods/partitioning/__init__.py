"""Partition trees: Mondrian and Rothko, on all rows or on samples."""

from sqlanon.support.methods import Method

METHOD = Method(
    __name__,
    place=1,
    algorithms={"mondrian": "policy:Mondrian", "rothko-t": "policy:RothkoT", "rothko-s": "policy:RothkoS"},
    searches={
        "mondrian": "algorithms:TreeSearch",
        "rothko-t": "algorithms:TreeSearch",
        "rothko-s": "algorithms:SampledTree",
    },
)
