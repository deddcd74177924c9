"""Measure the speed of training, of compiling, and of other libraries."""
