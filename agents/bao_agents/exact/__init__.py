"""Draw, solve, store and use positions with proofs of who wins."""
