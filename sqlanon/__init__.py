"""sqlanon anonymizes a relational table where it lives.

    from sqlanon import load_policy, run

    result = run(load_policy("policy.yml"))
    print(result.release.rows)

Everything named in `__all__` is the library's public interface, which `__init__.pyi` lists. Each name is imported when
it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from sqlanon.support.stubs import listed_in

__version__ = "0.1.0"

_PUBLIC = listed_in(__file__)
__all__ = sorted((*_PUBLIC, "__version__"))


def __getattr__(name: str) -> Any:
    """Import what is asked for, so that `import sqlanon` loads no database driver."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'sqlanon' has no attribute '{name}'")
    module, original = _PUBLIC[name]
    return getattr(importlib.import_module(module), original)


def __dir__() -> list[str]:
    """List the public names, those too that were not used yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
