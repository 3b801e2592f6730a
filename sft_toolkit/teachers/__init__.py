"""Asking teachers: what is sent, how, what comes back, and where it is kept.

More than 20 modules, because servers differ in each of these, and every stage with a teacher needs them all together.
"""
