"""The searches: alpha-beta, Monte Carlo tree search, and Gumbel search with a network."""
