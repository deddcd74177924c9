"""Help all rooms: array types, cores, files, figures, output, progress, provenance."""
