"""The words for what releases about the same people tell together that they should not.

A procedure in the database says the same sentences, with its own numbers in them.
"""

from __future__ import annotations

from sqlanon.results.history import HistoryFigures, counted_lines
from sqlanon.support.quantities import quantity

REFUSED = (
    "Nothing was published, and the old release is as it was. Release less often, with more new rows at a time; a run"
    " whose policy says `history: {mode: watch}` publishes with a warning. docs/several-releases.md says more."
)
REPAIR_HINT = " `run` and `apply` with --repair merge classes until all releases hold together, where that can be."


def history_problem(
    figures: HistoryFigures, k: int, violated: tuple[str, ...], unrepaired: str | None = None
) -> str | None:
    """Say what this release and the earlier ones tell together; None where nothing is violated.

    unrepaired: why a repair that was wanted can't be.
    """
    if not figures.below_k and not violated:
        return None
    release = first_about(figures.people)
    if figures.releases > 1 or figures.answers:
        earlier = counted_lines("earlier release", figures.releases - 1, figures.answers)
        release = together_with(earlier, figures.people)
    parts = []
    if figures.below_k:
        persons = quantity(figures.below_k, "person")
        parts.append(leaves_few(persons, k, f"{figures.came:,}", f"{figures.left:,}"))
    if violated:
        parts.append(shows_groups(", ".join(dict.fromkeys(violated))))
    return " ".join([f"{release} {', and '.join(parts)}.", *([] if unrepaired is None else [unrepaired])])


def first_about(people: str) -> str:
    """Name a release that is the first about its people."""
    return f"This first release about {people}"


def together_with(earlier: str, people: str) -> str:
    """Name a release with the number of earlier ones about the same people."""
    return f"Together with {earlier} about {people}, this one"


def leaves_few(persons: str, k: int, came: str, left: str) -> str:
    """Say how many persons are in groups of fewer than k."""
    return (
        f"leaves {persons} among fewer than {k} with the same classes in all of them"
        f" ({came} came, {left} left, others changed their class)"
    )


def shows_groups(models: str) -> str:
    """Say which models groups of persons violate."""
    return f"shows groups of persons that violate {models}"
