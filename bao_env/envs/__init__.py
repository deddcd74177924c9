"""The environments: :mod:`~bao_env.envs.aec` for PettingZoo, :mod:`~bao_env.envs.single` and
:mod:`~bao_env.envs.vector` for Gymnasium."""
