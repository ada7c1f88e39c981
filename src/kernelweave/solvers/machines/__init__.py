"""Support vector machines, weights of their kernels, and machines that learn from unlabelled rows."""
