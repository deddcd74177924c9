"""Define, run and save networks: their inputs, outputs and checkpoints. Nothing here searches."""
