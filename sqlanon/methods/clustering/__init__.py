"""Clusters of rows: microaggregation, r-gather and condensation, also of streams."""

from sqlanon.support.methods import Method

METHOD = Method(
    __name__,
    place=4,
    algorithms={
        "microaggregation": "policy:Microaggregation",
        "r-gather": "policy:RGather",
        "condensation": "policy:Condensation",
    },
    searches={
        "microaggregation": "algorithms:ClusterSearch",
        "r-gather": "algorithms:Gathering",
        "condensation": "algorithms:Condensing",
    },
    commands={"condense_command": ("condense",)},
)
