"""Sorted runs: a method of protection that a package adds, as the program's own are added."""

from sqlanon.support.methods import Method

METHOD = Method(
    __name__,
    place=1,
    algorithms={"sorted-runs": "policy:SortedRuns"},
    searches={"sorted-runs": "search:SortedRunsSearch"},
    rules="policy:problems",
    search_picture="picture:draw_order",
)
