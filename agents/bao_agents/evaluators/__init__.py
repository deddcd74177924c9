"""Evaluate a position for alpha-beta by the pairs of pits that it has."""
