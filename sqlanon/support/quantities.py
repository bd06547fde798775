"""Numbers of things in words."""


def quantity(count: int, noun: str, plural: str | None = None) -> str:
    """Write a number of things, in singular or plural: `1 rule`, `2,000 rules`; by its own plural `2 classes`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def rows_hold(count: int) -> str:
    """Write a number of rows with its verb: `1 row holds`, `2,000 rows hold`."""
    return f"{quantity(count, 'row')} {'holds' if count == 1 else 'hold'}"
