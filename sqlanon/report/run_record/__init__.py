"""The record of a run as a sealed document of its own, and the check of a release against it."""
