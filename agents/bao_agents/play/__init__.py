"""The web board: a small local server and a page. ``bao play`` starts it."""
