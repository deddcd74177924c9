"""Tests of the web board; browser/ has those in a browser."""
