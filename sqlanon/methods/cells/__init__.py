"""Suppression and generalization of single cells."""
