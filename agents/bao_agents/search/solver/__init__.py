"""Prove exact values: proof-number search, and the solver as a player."""
