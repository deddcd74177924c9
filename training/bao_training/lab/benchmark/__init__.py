"""The benchmark: several RL libraries and our own trainers on each observation."""
