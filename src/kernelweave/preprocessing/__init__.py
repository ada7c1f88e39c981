"""From a table of cells to a matrix for kernels: what each column is, what is done with it, and why.

``cells`` reads the cells of one column, ``columns`` decides what each column is, ``encoder`` carries that out.
"""

from .cells import MISSING
from .columns import Column, ColumnPlan, plan_columns
from .encoder import LARGEST, BlockScaler, ColumnScaler, TableReader, make_encoder, source_positions

__all__ = [
    "LARGEST",
    "MISSING",
    "BlockScaler",
    "Column",
    "ColumnPlan",
    "ColumnScaler",
    "TableReader",
    "make_encoder",
    "plan_columns",
    "source_positions",
]
