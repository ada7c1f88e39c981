"""Weights of kernels for discriminant analysis."""
