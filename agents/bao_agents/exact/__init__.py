"""Draw, solve, keep and use positions with proofs of who wins."""
