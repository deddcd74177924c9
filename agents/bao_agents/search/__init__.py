"""Search: alpha-beta, Monte Carlo tree search, and exact proofs."""
