"""The little of SVG that the pictures need: elements with escaped texts, a document with its alternative text."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

INK, SOFT, FAINT, PAPER = "#1b2733", "#55636f", "#c3ccd4", "#ffffff"
BLUE, PALE_BLUE, DARK_BLUE = "#0b66a8", "#d9ebf8", "#0a3a61"
RUST = "#a8420b"
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif"


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; in the names of attributes `_` stands for `-`, attributes that are None are left out."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_plain(value))}"
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>"


def words(text: str) -> str:
    """Text between tags; characters that XML can't hold are shown as unknown ones."""
    return escape("".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text))


def text(x: float, y: float, content: str, **attributes: object) -> str:
    """A line of text."""
    return element("text", words(content), x=x, y=y, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: object) -> str:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def rect(x: float, y: float, width: float, height: float, **attributes: object) -> str:
    """A rectangle."""
    return element("rect", x=x, y=y, width=width, height=height, **attributes)


def document(width: float, height: float, title: str, description: str, parts: Iterable[str], key: str = "") -> str:
    """The whole picture, on white, with what it shows in words; `key` is what its ids begin with."""
    head = [
        element("title", words(title), id=f"{key}title"),
        element("desc", words(description), id=f"{key}desc"),
        element("rect", width=width, height=height, fill=PAPER),
    ]
    attributes: dict[str, object] = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {_plain(width)} {_plain(height)}",
        "width": width,
        "height": height,
        "role": "img",
        "aria-labelledby": f"{key}title {key}desc",
        "font-family": FONT,
        "fill": INK,
    }
    return element("svg", "\n" + "\n".join([*head, *parts]) + "\n", **attributes) + "\n"


def width_of(content: str, size: float) -> float:
    """About how wide a line of text is."""
    return 0.58 * size * len(content)


def cut(content: str, most: int) -> str:
    """A name of at most so many characters."""
    return content if len(content) <= most else content[: most - 1] + "…"


def _plain(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
