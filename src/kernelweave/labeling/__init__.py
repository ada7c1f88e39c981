"""From a table to labels.

``table`` reads and writes a ``text_table`` or ``parquet``; ``cells`` reads the cells of one column, ``columns`` decides
what each column is, ``encoder`` makes a matrix of them; ``target`` and ``numbers`` read the given labels. ``job`` fills
in the others by ``classification`` or ``regression``, which share the loop over ``folds``, the ``learner``, the
``models`` that fill cells, and the ``statistics`` of errors.
"""
