"""Audits of differential privacy: its mechanisms, accounts and runs, tried on generated tables."""
