"""Tests of agents/bao_agents, without the web board."""
