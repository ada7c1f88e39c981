"""From a table to labels.

``table`` reads and writes a ``text_table`` or ``parquet``; ``cells`` reads the cells of one column, ``columns`` decides
what each column is, ``encoder`` makes a matrix of them; ``target`` and ``numbers`` read the given labels. ``job`` fills
in the others: ``tasks`` learns classes or numbers with the ``learner``, and ``models`` fill cells.
"""
