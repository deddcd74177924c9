"""Provide the command line ``bao``: its start, shared options, and a file for each command."""
