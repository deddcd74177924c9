"""Evaluate positions for alpha-beta by their pairs of pits."""
