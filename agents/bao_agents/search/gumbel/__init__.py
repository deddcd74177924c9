"""Search with a network, as Gumbel AlphaZero does."""
