"""Fit the evaluation of alpha-beta to the results of self-play.

    python -m training.fit_evaluation zanzibar

In each round alpha-beta plays itself, to a shallow depth and from random openings of all lengths,
with the weights of the round before. In the first round it has none and sees only wins within its
depth. Then logistic regression, with a table entry for every count of every pit, predicts from a
position who won. Positions of held-out games measure the fit.
"""

from __future__ import annotations

import argparse
import os
import sys

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

from agents.arena.match import GAME_OVER, play_games
from agents.arena.openings import draw_openings
from agents.search.alphabeta.evaluation import FEATURES, FILE, LIMIT, SCALE, WEIGHTS, features
from agents.search.alphabeta.player import AlphaBetaAgent
from bao_env.engine.batch import Engine
from bao_env.engine.position import movers
from bao_env.engine.ruleset import RULESETS, Ruleset, get_ruleset

HELD_OUT = 0.05
"""Share of the games that are held out of the fit."""


def play(
    ruleset: Ruleset, weights: npt.NDArray[np.int16], depth: int, games: int, seed: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Play ``games`` games of alpha-beta against itself from random openings.

    Args:
        ruleset: the rules.
        weights: int16[WEIGHTS], of the evaluation.
        depth: plies that each search looks ahead.
        games: number of games; fewer if there are too few openings of a length.
        seed: of the openings.

    Returns:
        for all P positions: features, int32[P, FEATURES]; who won, float32[P], 1 for the mover and
        0 for the other player; and the game of each, int64[P].
    """
    agent = AlphaBetaAgent(ruleset, depth=depth, weights=weights)
    engine = Engine(ruleset)
    inputs, results, owners = [], [], []
    lengths = np.arange(2, 42, 4)
    done = 0
    with tqdm(total=games, unit="game", desc=f"{ruleset.name}: self-play") as bar:
        for length in lengths:
            share = games // len(lengths)
            # There are few short openings: take what there is.
            for count in (share, share // 4, share // 64):
                try:
                    openings = draw_openings(ruleset, count, int(length), seed, balance=None)
                    break
                except ValueError:
                    continue
            else:
                bar.update(share)
                continue
            played = play_games(
                (agent, agent), openings.positions, np.zeros(len(openings), np.int8), engine
            )
            positions = openings.positions.copy()
            masks = np.empty(len(positions), np.uint64)
            winners = np.empty(len(positions), np.int8)
            engine.legal_masks(positions, masks, winners)
            for ply in range(played.actions.shape[1]):
                going = np.flatnonzero(
                    (played.actions[:, ply] != GAME_OVER) & (played.winners >= 0)
                )
                if not len(going):
                    break
                seats = movers(positions[going])
                masks[played.actions[:, ply] == GAME_OVER] = 0
                found = np.empty((len(going), FEATURES), np.int32)
                features(positions[going], found)
                inputs.append(found)
                results.append((seats == played.winners[going]).astype(np.float32))
                owners.append(done + going)
                engine.step(positions, played.actions[:, ply], masks, winners)
            done += len(openings)
            bar.update(share)
    return np.concatenate(inputs), np.concatenate(results), np.concatenate(owners)


def fit(
    inputs: npt.NDArray[np.int32],
    results: npt.NDArray[np.float32],
    games: npt.NDArray[np.int64],
    epochs: int,
    seed: int,
) -> tuple[npt.NDArray[np.int16], float]:
    """Fit the evaluation to what :func:`play` returned.

    Args:
        inputs: int32[P, FEATURES].
        results: float32[P].
        games: int64[P].
        epochs: passes over the positions.
        seed: of their order.

    Returns:
        weights, int16[WEIGHTS], and the log loss on held-out games in bits a position.

    Raises:
        ValueError: there are too few positions.
    """
    torch.manual_seed(seed)
    held = torch.from_numpy(games % round(1 / HELD_OUT) == 0)
    features_read, targets = torch.from_numpy(inputs), torch.from_numpy(results)
    train = torch.nonzero(~held).flatten()
    table = torch.nn.EmbeddingBag(WEIGHTS, 1, mode="sum")
    torch.nn.init.zeros_(table.weight)
    loss_of = torch.nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(table.parameters(), lr=0.01)
    size = 8192
    if len(train) < size:
        raise ValueError(
            f"{len(train)} positions to learn from: expected at least {size}; play more games"
        )
    steps = epochs * (len(train) // size)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, steps)
    with tqdm(total=steps, unit="step", desc="fit") as bar:
        for _ in range(epochs):
            order = train[torch.randperm(len(train))]
            for low in range(0, len(order) - size + 1, size):
                part = order[low : low + size]
                # Weight decay pulls entries that hardly ever occur to 0.
                loss = loss_of(table(features_read[part]).squeeze(1), targets[part])
                loss = loss + 1e-6 * table.weight.square().sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                bar.update()
    with torch.inference_mode():
        logits = table(features_read[held]).squeeze(1)
        loss = loss_of(logits, targets[held]).item() / np.log(2.0)
    weights = (table.weight.detach().flatten().numpy() * SCALE).round()
    return weights.clip(-LIMIT // FEATURES, LIMIT // FEATURES).astype(np.int16), loss


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.fit_evaluation``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.fit_evaluation",
        description="Fit alpha-beta's evaluation to self-play, and write its file of weights.",
    )
    parser.add_argument("rulesets", nargs="*", metavar="RULES", help="default: all")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of self-play and fit (3)")
    parser.add_argument("--games", type=int, default=60_000, help="games a round (60000)")
    parser.add_argument("--depth", type=int, default=4, help="plies that self-play looks ahead (4)")
    parser.add_argument("--epochs", type=int, default=3, help="passes over the positions (3)")
    parser.add_argument("--seed", type=int, default=0, help="(0)")
    args = parser.parse_args(argv)
    if min(args.rounds, args.depth, args.epochs) < 1 or args.games < 1000 or args.seed < 0:
        parser.error("--rounds, --depth and --epochs must be positive, --games at least 1000")
    try:
        rulesets = [get_ruleset(name) for name in args.rulesets or RULESETS]
    except ValueError as error:
        parser.error(str(error))
    for ruleset in rulesets:
        weights = np.zeros(WEIGHTS, np.int16)
        for i in range(args.rounds):
            seed = args.seed * 1000 + i
            inputs, results, games = play(ruleset, weights, args.depth, args.games, seed)
            try:
                weights, loss = fit(inputs, results, games, args.epochs, seed)
            except ValueError as error:
                print(f"error: {error}", file=sys.stderr)
                return 2
            print(
                f"{ruleset.name} round {i + 1}: {len(inputs)} positions, log loss {loss:.4f} bits"
            )
        fitted = {}
        if FILE.exists():
            with np.load(FILE, allow_pickle=False) as archive:
                fitted = {name: archive[name] for name in archive.files}
        fitted[ruleset.name] = weights
        temporary = FILE.with_suffix(".tmp.npz")
        np.savez_compressed(temporary, **fitted)
        os.replace(temporary, FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
