"""Rille in Python: run workflow scripts, give them Python functions, share arrays. Manual: docs/manual/python.md."""
from ._library import KINDS, Error, lib as _lib
from ._memory import Buffer, Tensor
from ._runtime import Run, Runtime, Script
from ._values import Function

__version__ = _lib.rille_version().decode()
__all__ = ["Buffer", "Error", "Function", "KINDS", "Run", "Runtime", "Script", "Tensor"]
