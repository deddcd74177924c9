"""Serve the web board: a small local server and a page, which ``bao play`` starts."""
