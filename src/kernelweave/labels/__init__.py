"""From y as the user writes it to a partition of the rows; the only room that knows what "unlabelled" looks like."""

from .doubtful import MISSING, NO_LABEL, describe_markers, find_text_markers
from .partitions import Partition, TargetPartition, refuse_no_label
from .rule import column, factorize, is_unlabeled, labeled_values, partition, partition_targets

__all__ = [
    "MISSING",
    "NO_LABEL",
    "Partition",
    "TargetPartition",
    "column",
    "describe_markers",
    "factorize",
    "find_text_markers",
    "is_unlabeled",
    "labeled_values",
    "partition",
    "partition_targets",
    "refuse_no_label",
]
