import numpy as np
import pytest

from kernelweave import RBF, KernelLibrary, Linear
from kernelweave.estimators.shared.memory import require_memory, require_stack_memory

X = np.zeros((40, 3))


def test_memory_is_asked_for_before_it_is_taken():
    bound = KernelLibrary([RBF(), RBF(2.0)]).bind(X, np.random.default_rng(0))
    require_stack_memory("Me", bound, 100, "float64", "less")
    with pytest.raises(MemoryError, match=r"Me keeps 2 kernels of 10,000,000 rows in memory, .* or less\.$"):
        require_stack_memory("Me", bound, 10_000_000, "float64", "less")
    few = KernelLibrary([Linear()]).bind(np.zeros((10, 3)), np.random.default_rng(0))
    require_stack_memory("Me", few, 10_000_000, "float64", "less", by_features=True)  # three features a row
    with pytest.raises(MemoryError):
        require_stack_memory("Me", few, 10_000_000, "float64", "less")


def test_what_and_advice_are_told():
    require_memory(1e3, "It keeps little", "Go on.")
    with pytest.raises(MemoryError, match=r"It keeps a lot, about 931322574\.6 GB of the .* GB here\. Use less\."):
        require_memory(1e18, "It keeps a lot", "Use less.")
