"""What is similar: recipes of kernels, and kernels bound to a sample."""
