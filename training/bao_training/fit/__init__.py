"""Fit evaluations of alpha-beta to self-play, and write files of exact values."""
