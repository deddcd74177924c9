"""The board in a browser: a small local server and a page. ``bao play`` starts it."""
