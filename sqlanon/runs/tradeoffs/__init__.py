"""Trade-offs between protection and quality, without a release: explored lattices, and sweeps over several k."""
