"""Tests. `python -m tests.record RULESET` makes the recorded files that a new rule set needs."""
