"""Train Bao policies by self-play, and run the command ``bao``."""
