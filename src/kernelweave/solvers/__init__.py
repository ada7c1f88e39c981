"""What is optimal: arrays and callables in, one result with a certificate out."""
