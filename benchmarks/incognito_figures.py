"""Figures 10 to 12 of SIGMOD 2005 over Adult, as PNG files: search time by attributes, by k, and the cost of the cube.

python benchmarks/incognito_figures.py [--into DIRECTORY] [--sizes 3-9] [--times 3]

Times are process CPU seconds of the search alone, medians; the searches that the paper compares check what the paper's
check, and `Incognito` is ours, which passes over nodes with an attribute at `*`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
from adult import policy, timed
from matplotlib import pyplot as plt

from sqlanon.methods.generalization.explore.build_problem import build_problem
from sqlanon.methods.generalization.lattice.frequency.materialize import Cube
from sqlanon.methods.generalization.lattice.incognito import IncognitoSearch
from sqlanon.methods.generalization.lattice.problem import Findings, Problem

Search = Callable[[Problem], Findings]
Line = tuple[dict[str, object], Search | None]


def published(variant: str) -> Search:
    """Incognito with the paper's checks."""
    return lambda problem: IncognitoSearch(problem, variant, infers=False).go()


LINES: dict[str, Line] = {
    "bottom-up without roll-up": ({"name": "bottom-up", "rollup": False}, None),
    "binary search": ({"name": "samarati"}, None),
    "bottom-up with roll-up": ({"name": "bottom-up", "rollup": True}, None),
    "basic Incognito as published": ({"name": "incognito"}, published("basic")),
    "cube Incognito as published": ({"name": "incognito", "variant": "cube"}, published("cube")),
    "super-roots Incognito as published": ({"name": "incognito", "variant": "super-roots"}, published("super-roots")),
    "Incognito": ({"name": "incognito"}, None),
}


def measure(size: int, k: int, line: Line, times: int) -> float:
    """The median CPU seconds of a search."""
    algorithm, search = line
    wanted = policy(size, k, algorithm)
    return statistics.median(timed(wanted, search).cpu_seconds for _ in range(times))


def cube_cost(size: int, k: int, times: int) -> tuple[float, float]:
    """The median CPU seconds of making the cube, and of the search from it."""
    making, searching = [], []
    for _ in range(times):
        with build_problem(policy(size, k, {"name": "incognito", "variant": "cube"})) as found:
            problem = found.problem
            assert problem.sets.marginals
            started = time.process_time()
            cube = Cube(problem.sets, problem.lattice.heights)
            making.append(time.process_time() - started)
            cube.drop()
            started = time.process_time()
            published("cube")(problem)
            searching.append(time.process_time() - started - making[-1])
    return statistics.median(making), statistics.median(searching)


def figure_10(into: Path, sizes: range, times: int) -> None:
    """Time by the number of quasi-identifiers, k = 2 and 10."""
    figure, axes = plt.subplots(1, 2, figsize=(12, 5), sharey=True)
    for axis, k in zip(axes, (2, 10), strict=True):
        for name, line in LINES.items():
            taken = [measure(size, k, line, times) for size in sizes]
            axis.plot(list(sizes), taken, marker="o", label=name)
            print(f"figure 10, k={k:>2}, {name:<36}" + "".join(f"{seconds:8.2f}" for seconds in taken), flush=True)
        axis.set(title=f"Adult, k={k}", xlabel="quasi-identifiers", ylabel="CPU seconds", yscale="log")
    axes[0].legend(fontsize="small")
    save(figure, into / "figure-10.png")


def figure_11(into: Path, times: int, size: int = 8) -> None:
    """Time by k."""
    figure, axis = plt.subplots(figsize=(7, 5))
    ks = (2, 5, 10, 25, 50)
    for name, line in LINES.items():
        taken = [measure(size, k, line, times) for k in ks]
        axis.plot(ks, taken, marker="o", label=name)
        print(f"figure 11, {size} attributes, {name:<36}" + "".join(f"{s:8.2f}" for s in taken), flush=True)
    axis.set(title=f"Adult, {size} quasi-identifiers", xlabel="k", ylabel="CPU seconds", yscale="log")
    axis.legend(fontsize="small")
    save(figure, into / "figure-11.png")


def figure_12(into: Path, sizes: range, times: int) -> None:
    """Plot the part of cube Incognito's time that making the cube takes."""
    figure, axis = plt.subplots(figsize=(7, 5))
    both = [cube_cost(size, 2, times) for size in sizes]
    making, searching = [list(part) for part in zip(*both, strict=True)]
    axis.bar(list(sizes), making, label="making the cube")
    axis.bar(list(sizes), searching, bottom=making, label="searching from it")
    print("figure 12, making the cube  " + "".join(f"{seconds:8.2f}" for seconds in making))
    print("figure 12, searching from it" + "".join(f"{seconds:8.2f}" for seconds in searching), flush=True)
    axis.set(title="Cube Incognito on Adult, k=2", xlabel="quasi-identifiers", ylabel="CPU seconds")
    axis.legend()
    save(figure, into / "figure-12.png")


def save(figure: mpl.figure.Figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=Path("benchmarks/figures"))
    parser.add_argument("--sizes", default="3-9", help="the numbers of quasi-identifiers, first and last")
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    mpl.use("agg")
    arguments.into.mkdir(parents=True, exist_ok=True)
    first, last = map(int, arguments.sizes.split("-"))
    sizes = range(first, last + 1)
    figure_10(arguments.into, sizes, arguments.times)
    figure_11(arguments.into, arguments.times)
    figure_12(arguments.into, sizes, arguments.times)


if __name__ == "__main__":
    main()
