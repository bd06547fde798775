"""Full-domain generalization: the searches of the lattice, and top-down specialization."""
