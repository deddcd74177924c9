"""Search with alpha-beta, either in full or guided by a network."""
