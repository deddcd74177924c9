"""Alpha-beta search, full or guided by a network."""
