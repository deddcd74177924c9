"""Adapt the game to RL libraries, one module each; import the one that you need.

====================================  ====================================================
``bao_env.adapters.sb3``              batches as a Stable-Baselines3 ``VecEnv``, and self-play
``bao_env.adapters.torchrl``          batches as a TorchRL ``EnvBase``
``bao_env.adapters.rllib``            a masked RLModule and the environments under RLlib's names
``bao_env.adapters.open_spiel``       the OpenSpiel game ``python_bao``
====================================  ====================================================

Tianshou, skrl, AgileRL and CleanRL's pattern use the environments as they are. For self-play all of
them can use :mod:`bao_env.self_play`.
"""
