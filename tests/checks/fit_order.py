"""The order in which a fit takes its rows."""

import numpy as np

from kernelweave.kernels.content_order import order_rows


def labeled_rows(X, is_labeled):
    """The numbers of the labelled rows in the order of the fit: folds name them by their places in it."""
    order = order_rows(X)
    return order[np.asarray(is_labeled)[order]]


def in_order(X, *others):
    """The rows, and what belongs to them, in the order in which a fit takes them."""
    order = order_rows(X)
    return X[order], *(values[order] for values in others)
