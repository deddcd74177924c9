"""Let a language model play against itself in TextArena, with that library's agents.

    pip install textarena
    export OPENAI_API_KEY=... OPENAI_BASE_URL=http://127.0.0.1:8000/v1
    python docs/textarena_game.py MODEL

Any agent of TextArena can take a seat, and TextArena's wrappers can record or change what the
players see. ``bao_env.adapters.textarena`` has the names of the games and their arguments.
"""

from __future__ import annotations

import os
import sys

import textarena as ta

import bao_env.adapters.textarena  # noqa: F401 - registers the games


def play(agents: dict[int, ta.Agent], seed: int = 0) -> str:
    """Play a game from an opening of four random moves; return how it ended.

    Args:
        agents: the players of South (0) and North (1).
        seed: the seed of the opening.
    """
    env = ta.make("Bao-v0-train", opening_plies=4)
    env.reset(num_players=2, seed=seed)
    done = False
    while not done:
        player, observation = env.get_observation()
        done, _ = env.step(agents[player](observation))
    _, info = env.close()
    return str(info[0]["reason"])


def main() -> None:
    """Play one game of the model on the command line."""
    model = ta.agents.OpenAIAgent(sys.argv[1], base_url=os.environ.get("OPENAI_BASE_URL"))
    print(play({0: model, 1: model}))


if __name__ == "__main__":
    main()
