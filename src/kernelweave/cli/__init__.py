"""The command ``kernelweave``; ``main`` is where it begins."""
