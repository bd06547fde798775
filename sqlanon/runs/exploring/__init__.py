"""Searching without a release: lattices looked through, and several k tried."""
