"""From y as the user writes it to a partition of the rows; the only room that knows what "unlabelled" looks like."""

from .partitions import Partition, TargetPartition
from .rule import column, factorize, is_unlabeled, labeled_values, partition, partition_targets

__all__ = [
    "Partition",
    "TargetPartition",
    "column",
    "factorize",
    "is_unlabeled",
    "labeled_values",
    "partition",
    "partition_targets",
]
