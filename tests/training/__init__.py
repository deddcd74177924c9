"""Tests of training: bao_training and the examples of other libraries."""
