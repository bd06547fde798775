"""Runs: from the policy to the published, recorded release, by a search or by stored rules; resuming them."""
