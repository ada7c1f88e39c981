"""From a table to labels.

``table`` reads and writes, be it a ``text_table`` or ``parquet``; ``cells`` reads the cells of one column, ``columns``
decides what each column is, ``encoder`` makes a matrix of them; ``target`` and ``numbers`` read the given labels;
``job`` learns, ``models`` fill cells, and ``statistics`` says how wrong they may be.
"""
