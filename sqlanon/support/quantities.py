"""Numbers of things in words."""


def quantity(count: int, noun: str) -> str:
    """Write a number of things, in singular or plural: `1 rule`, `2,000 rules`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
