"""The commands of training, a file for each."""
