"""Play Bao in the environments of PettingZoo and Gymnasium, which share this contract.

:class:`bao_env.raw_env` (:mod:`~bao_env.envs.aec`) implements PettingZoo's interface.
:class:`bao_env.BaoEnv` (:mod:`~bao_env.envs.single`) and :class:`bao_env.BaoVectorEnv`
(:mod:`~bao_env.envs.vector`) implement Gymnasium's, with one game and with many. Each class
documents its differences. In the vector environment every array has a leading axis, one row per
game.

**Actions.** ``Discrete(64)``, ``pit * 4 + direction * 2 + house``: pits 0..7 are the front row of
the player to act, 8..15 the back row, both from their own left; direction 0 = left, 1 = right;
house 1 = play the house. One action is a whole turn, with all its captures and laps. Only in rule
set ``dutch`` may a player choose the side of a later capture in a further action.
``bao_env.action_to_move(24)`` is the name ``"A7L"``, and ``bao_env.move_to_action("A7L")`` is 24.

**Observation.** A dict of fresh arrays, the board from the side of the player who sees it:

* ``"observation"``: float32[52] from 0 to 8, in units of eight seeds
  (:mod:`bao_env.observation.board`). ``observation=`` chooses another kind
  (:mod:`bao_env.observation.observer`): with ``"replies"``, which also shows what each action
  captures, every learner that we measured scored 340 to 550 Elo more.
* ``"action_mask"``: int8[64], 1 = legal. It is exact, and all zero for a player who is not to act.
  Its dtype is not bool, so ``~mask`` does not invert it: write ``mask == 0``, or use
  :meth:`action_masks`, bool[64].

``flat=True`` returns just the ``"observation"`` array. Gymnasium's environments also give a copy of
the mask in ``infos["action_mask"]``.

``env.action_space.sample(observation["action_mask"])`` draws a legal action, in PettingZoo
``env.action_space(agent).sample(...)``. So does :meth:`sample_legal_actions`, for all games of a
batch, too. An environment of ``gymnasium.make`` hides its own methods behind wrappers:
``env.unwrapped.sample_legal_actions()``.

**Opponent.** ``BaoEnv`` and ``BaoVectorEnv`` play against ``opponent``, by default ``"random"``:
each step is the learner's ply and the opponent's answers, and observations and rewards are the
learner's. The learner's seat is drawn for each game, unless ``seat=`` says ``"south"`` or
``"north"``. ``opponent=None`` is self-play: each action is for the player to act, and the reward is
for the player who *has just acted*. The observation that comes with it is the *next* player's. That
is usually the other player, so a value bootstrapped from it changes sign:
``target = reward - discount * value(observation)``. Where the same player acts again, in rule set
``dutch``, the sign stays. To find out, compare ``infos["seat"]``, the seat whose observation is
returned, before and after the step.

**Rewards.** +1 for a win and -1 for a loss, on the last ply, else 0: for the learner, or in
self-play for the player who has just acted. PettingZoo gives both agents theirs. So against an
opponent the learner has won exactly the games that end with ``reward > 0``.

**End.** Terminated when the game is won: a front row is empty, or the player to act has no legal
move. The last mask is then all zero. The rules have no draw. Truncated, with reward 0, after 500
plies (``max_plies``, both players' plies together; in ``dutch`` each action of a turn is a ply).
Against an opponent, a game is cut short only after the opponent's answer. So the player who sees
the last observation is to move, has a mask, and can bootstrap from this observation as from any
other.

At the end ``infos["winner"]`` is the seat that won, or -1 if the game was cut short, and
``infos["plies"]`` is the length of the game; in PettingZoo, the infos of both agents contain them.
Against a :class:`bao_env.OpponentPool`, ``infos["opponent"]`` is the number of the member that
played last. Run a game until ``terminated or truncated``. Prefer ``max_plies`` to Gymnasium's
``max_episode_steps``, which cuts a game short without these infos.

**Illegal actions.** They lose the game: the player who acted gets -1 and ``infos["illegal"]`` is
True, as in PettingZoo's own environments. With ``illegal="raise"`` they raise
:class:`bao_env.IllegalMoveError`, a ValueError that names the legal actions, and change nothing.
An integer outside the action space, such as 64, is a mistake in the program and no move: it always
raises this error.

**Openings.** Against an opponent a game opens with up to eight random plies (``opening_plies``),
so an agent cannot win by memorising one line against a deterministic bot. In self-play and in
PettingZoo, it starts by default at the opening position of the rules.

**Reset options.** ``{"first_player": "north"}`` lets North begin, ``{"position": text}`` starts at
a position text (:mod:`bao_env.notation`) with ply 0, ``{"seat": "north"}`` makes the learner North.
They apply to the games that this reset begins; None means the environment's argument. In the vector
environment ``"position"`` may be a list of texts, one for each game.

**Interruptions.** If an exception or Ctrl-C interrupts a step or a reset, for example because an
opponent fails, the environment asks for a reset (``gymnasium.error.ResetNeeded``). Wrong actions,
seeds and options raise before anything changes. There is one exception: if the opponent wins before
the learner can act, the reset raises after moves have been played. Reset again.

**Arguments.** :class:`bao_env.BaoEnv` lists the arguments that the environments share.

**Version history.** v0: first version.
"""
