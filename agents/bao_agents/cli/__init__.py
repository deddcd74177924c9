"""Run commands: options, files, games as text, benchmarks, and compiling in advance."""
