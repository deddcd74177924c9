"""Adapt the game to RL libraries, one module each; import the one that you need.

====================================  ====================================================
``bao_env.adapters.sb3``              batches as a Stable-Baselines3 ``VecEnv``
``bao_env.adapters.open_spiel``       the OpenSpiel game ``python_bao``
====================================  ====================================================

RLlib, TorchRL, Tianshou, skrl, AgileRL and scripts in CleanRL's style use the environments without
an adapter. For self-play all of them can use :mod:`bao_env.self_play`. Example learners are in
``training/examples``.
"""
