"""Provide what packages here share: array types, cores, files, figures, output and records."""
