"""Tests of bao_env."""
