"""Full-domain generalization: searches over the generalization lattice (LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005)."""
