"""Prove exact values by proof-number search, and play with the solver."""
