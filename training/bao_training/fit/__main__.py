"""``python -m bao_training.fit``: fit an evaluation of alpha-beta, for those who change it."""

import argparse

from bao_training.fit.evaluations import command

parser = argparse.ArgumentParser(prog="python -m bao_training.fit")
run = command(parser)
run(parser.parse_args())
