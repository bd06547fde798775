"""Pictures as SVG: of a lattice, of privacy against utility, of shares and sizes. They hold no cell values."""
