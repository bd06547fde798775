"""Tests of m-invariance."""
