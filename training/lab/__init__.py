"""What made one figure or table of a document, each run with ``python -m``."""
