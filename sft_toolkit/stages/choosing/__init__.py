"""Choosing data: which attempts are right, which records to keep of a prompt, of duplicates and beside a benchmark.

Each command looks at all records in a first pass and decides; a second pass, an ordinary stage, applies the decisions.
"""
