"""Which code made the state in a checkpoint: only the same code may go on from it."""

from typing import Final

FOLD_CODE: Final = "84ac41ff55cb589f"
"""A digest of every module that decides what a log amounts to. It is a constant, and not computed from the
files at run time, because a process may run older code than lies on the disk. What it must be is told by
``tests/spec/test_fold_code.py``, which fails when it is something else."""
