"""Loops that numba compiles: when, and where the compiled code is kept."""
