"""Pictures of a lattice as SVG: all of it while it is small, the frontier alone beyond. They hold no cell values."""

from __future__ import annotations

from sqlanon.methods.generalization.explore.exploration import Exploration
from sqlanon.methods.generalization.explore.frontier import draw_frontier
from sqlanon.methods.generalization.explore.hasse import MOST_NODES, draw_lattice


def draw(exploration: Exploration) -> str:
    """An SVG document: the whole lattice if it has at most 300 generalizations, else the minimal ones as a chart."""
    if exploration.chart is None or exploration.lattice.size > MOST_NODES:
        return draw_frontier(exploration)
    return draw_lattice(exploration, exploration.chart)
