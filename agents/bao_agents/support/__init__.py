"""Help several rooms: files, progress, provenance, figures, arrays, vectors."""
