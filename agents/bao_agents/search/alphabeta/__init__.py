"""Search with alpha-beta, in full or guided by a network."""
