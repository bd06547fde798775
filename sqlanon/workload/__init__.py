"""What a release is worth to those who want to predict a target from it."""
