"""Search: alpha-beta, Monte Carlo tree search, Gumbel search with a network, and exact proofs."""
