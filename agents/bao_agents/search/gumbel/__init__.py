"""Gumbel search with a network."""
