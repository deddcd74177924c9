"""The board in a browser: a small local server and a page. ``python -m agents.play`` starts it."""
