"""Define players, and find them by name."""
