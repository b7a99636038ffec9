"""Python objects as values of scripts, and back."""
import ctypes
from ctypes import POINTER, byref, c_void_p

from . import _memory
from ._library import (BOOL, BYTES, FUNCTION, HANDLE, INTEGER, NIL, NUMBER, TABLE, Error, Field, Table, Value, check,
                       lib)

DEPTH = 100  # of tables, as in rille.h


class Lent:
    """Values made from Python objects; they are valid while this object lives."""

    def __init__(self, runtime, objects):
        self._runtime, self._kept = runtime, []
        self.values = (Value * max(1, len(objects)))()
        for i, item in enumerate(objects):
            self._write(item, self.values[i], 0)

    def _write(self, item, out, depth):
        if item is None:
            out.kind = NIL
        elif isinstance(item, bool):
            out.kind, out.of.boolean = BOOL, item
        elif isinstance(item, int):
            if not -2**63 <= item < 2**63:
                raise Error("invalid", f"{item} is larger than a number of a script can be", "pass it as a string")
            out.kind, out.of.integer = INTEGER, item
        elif isinstance(item, float):
            out.kind, out.of.number = NUMBER, item
        elif isinstance(item, (str, bytes, bytearray)):
            data = item.encode() if isinstance(item, str) else bytes(item)
            self._kept.append(data)
            out.kind, out.of.bytes.data, out.of.bytes.size = BYTES, ctypes.cast(data, c_void_p), len(data)
        elif isinstance(item, (dict, list, tuple)):
            self._write_table(item, out, depth)
        elif isinstance(item, _memory.Memory):
            out.kind, out.of.handle = HANDLE, item._handle
            self._kept.append(item)
        elif isinstance(item, Function):
            out.kind, out.of.function = FUNCTION, item._number
            self._kept.append(item)
        elif hasattr(item, "__dlpack__"):
            self._write(_memory.tensor(self._runtime, item), out, depth)
        elif hasattr(item, "__float__"):  # NumPy's scalars
            out.kind, out.of.number = NUMBER, float(item)
        else:
            raise Error("invalid", f"a {type(item).__name__} cannot be passed to a script",
                        "pass None, bool, int, float, str, bytes, list, dict, arrays, Tensor, Buffer or Function")

    def _write_table(self, item, out, depth):
        if depth >= DEPTH:
            raise Error("invalid", f"more than {DEPTH} levels of lists and dicts", "or one that contains itself")
        table = Table()
        if isinstance(item, dict):
            fields = (Field * max(1, len(item)))()
            for field, (name, value) in zip(fields, item.items()):
                if not isinstance(name, (str, bytes)):
                    raise Error("invalid", f"the key {name!r} is not a string", "use a list, or strings as keys")
                data = name.encode() if isinstance(name, str) else name
                self._kept.append(data)
                field.name, field.name_size = ctypes.cast(data, c_void_p), len(data)
                self._write(value, field.value, depth + 1)
            table.fields, table.field_count = fields, len(item)
        else:
            items = (Value * max(1, len(item)))()
            for place, value in zip(items, item):
                self._write(value, place, depth + 1)
            table.items, table.item_count = items, len(item)
        self._kept.append(table)
        out.kind, out.of.table = TABLE, ctypes.pointer(table)


def _text(data, size):
    raw = ctypes.string_at(data, size) if size else b""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def received(runtime, value):
    """The Python object for a borrowed value. Strings that are not UTF-8 are bytes; a table is a list, or with names a
    dict, in which items have their numbers as keys; an empty one is []."""
    kind = value.kind
    if kind == BOOL:
        return bool(value.of.boolean)
    if kind == NUMBER:
        n = value.of.number
        return int(n) if n == n and abs(n) <= 2**53 and n == int(n) else n
    if kind == INTEGER:
        return value.of.integer
    if kind == BYTES:
        return _text(value.of.bytes.data, value.of.bytes.size)
    if kind == HANDLE:
        return _memory.received(runtime, value.of.handle)
    if kind == FUNCTION:
        check(lib.rille_script_function_hold(runtime._live(), value.of.function))
        return Function(runtime, value.of.function)
    if kind != TABLE:
        return None
    table = value.of.table.contents
    items = [received(runtime, table.items[i]) for i in range(table.item_count)]
    if not table.field_count:
        return items
    out = {i + 1: item for i, item in enumerate(items)}
    for i in range(table.field_count):
        field = table.fields[i]
        out[_text(field.name, field.name_size)] = received(runtime, field.value)
    return out


class Function:
    """A function of a script. Called, it runs at once and must not wait; `begin` runs it in a fiber that may."""

    def __init__(self, runtime, number, script=None):
        self._runtime, self._number, self._script = runtime, number, script  # the script stays while its functions do

    def __call__(self, *arguments, results=1):
        lent, got = Lent(self._runtime, arguments), (Value * max(1, results))()
        check(lib.rille_script_call(self._runtime._live(), self._number, lent.values, len(arguments), got, results))
        self._runtime._changed()
        values = [received(self._runtime, got[i]) for i in range(results)]
        return values[0] if results == 1 else tuple(values)

    def begin(self, *arguments):
        """Starts a call in a fiber of its own; returns an awaitable for its first result."""
        return self._runtime._begin(self, arguments)

    def __del__(self):
        if self._runtime._pointer:
            lib.rille_script_function_drop(self._runtime._pointer, self._number)
