"""Other RL libraries on Bao: a short script a library and route, run by ``check``."""
