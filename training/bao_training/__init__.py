"""Self-play training and evaluation of Bao policies."""
