"""From records of a run and plain data to tables, drawings and one self-contained page. Imports nothing of ours.

A section is the plain description of a paper (its items with rows, methods, measures, panels, printed numbers and
notes); a record is one finished cell. Both are dictionaries and lists as JSON has them.
"""
