"""Tests. `python -m tests.make_golden RULESET` makes the data that a new rule set needs."""
