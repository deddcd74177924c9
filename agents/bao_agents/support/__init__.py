"""Hold what several packages here use: array types, cores, files, figures, output and records."""
