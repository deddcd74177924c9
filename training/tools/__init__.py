"""Tools around training, each run with ``python -m``."""
