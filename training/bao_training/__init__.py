"""Self-play training and evaluation of Bao policies; run from a checkout with ``python -m``."""
