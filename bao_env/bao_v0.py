"""Export the environment under a versioned name, as PettingZoo's tools expect."""

from bao_env.envs.aec import env, raw_env

__all__ = ["env", "raw_env"]
