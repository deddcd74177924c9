"""Other RL libraries on Bao: a short script for each library and route, run by ``check``."""
