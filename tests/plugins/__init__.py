"""Parts that installed packages add: the package of examples/plugin, built, installed, used, and gone again."""
