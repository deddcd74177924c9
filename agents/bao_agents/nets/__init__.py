"""Networks: what they read, what they say, and how they are kept. Nothing here searches."""
