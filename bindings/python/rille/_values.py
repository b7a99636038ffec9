"""Python objects as values of scripts, and back."""
import ctypes
import operator
from ctypes import POINTER, byref, c_void_p

from . import _memory
from ._library import (BOOL, BYTES, FUNCTION, HANDLE, INTEGER, NIL, NUMBER, TABLE, Error, Field, Table, Value, check,
                       lib)

DEPTH, VALUES = 100, 10_000_000  # of tables and of all values, as in rille.h


class Lent:
    """Values made from Python objects; they are valid while this object lives. `what` names them in errors."""

    def __init__(self, runtime, objects, what="argument"):
        self._runtime, self._kept, self._path, self._count = runtime, [], [], 0
        self.values = (Value * max(1, len(objects)))()
        for i, item in enumerate(objects):
            self._what = f"argument {i + 1}" if what == "argument" else what
            self._write(item, self.values[i])

    def _refuse(self, why, hint=""):
        raise Error("invalid", f"{self._what}{''.join(self._path)} {why}", hint)

    def _write(self, item, out):
        self._count += 1
        if self._count > VALUES:
            self._refuse("holds more than 10 million values", "keep large data in buffers or tensors")
        if item is None:
            out.kind = NIL
        elif isinstance(item, bool):
            out.kind, out.of.boolean = BOOL, item
        elif isinstance(item, (int, float)):
            self._write_number(item, out)
        elif isinstance(item, (str, bytes, bytearray)):
            data = self._utf8(item) if isinstance(item, str) else bytes(item)
            self._kept.append(data)
            out.kind, out.of.bytes.data, out.of.bytes.size = BYTES, ctypes.cast(data, c_void_p), len(data)
        elif isinstance(item, (dict, list, tuple)):
            self._write_table(item, out)
        else:
            self._write_object(item, out)

    def _write_number(self, number, out):
        if isinstance(number, float):
            out.kind, out.of.number = NUMBER, number
            return
        if not -2**53 <= number <= 2**53:
            self._refuse(f"is an integer of {number.bit_length()} bits: a script's numbers hold integers up to 2^53",
                         "pass it as a string")
        out.kind, out.of.integer = INTEGER, number

    def _number_of(self, item):
        try:
            return operator.index(item)  # first: float() rounds large integers
        except Exception:
            pass
        try:
            return float(item)
        except Exception as e:
            self._refuse(f"is a {type(item).__name__} that gives no number: {type(e).__name__}")

    def _utf8(self, text, what="is"):
        try:
            return str.encode(text)
        except UnicodeEncodeError as e:
            self._refuse(f"{what} text that is not UTF-8: {text[e.start:e.end]!a} at position {e.start}",
                         'pass bytes, such as text.encode("utf-8", "surrogateescape")')

    def _write_object(self, item, out):
        if isinstance(item, (_memory.Memory, Function)):
            if item._runtime is not self._runtime:
                self._refuse(f"is a {type(item).__name__} of another runtime")
            self._kept.append(item)
            if isinstance(item, Function):
                out.kind, out.of.function = FUNCTION, item._number
            else:
                out.kind, out.of.handle = HANDLE, item._handle
        elif hasattr(item, "__dlpack__"):
            self._write_object(_memory.tensor(self._runtime, item), out)
        elif hasattr(item, "__index__") or hasattr(item, "__float__"):  # NumPy's scalars
            self._write_number(self._number_of(item), out)
        else:
            self._refuse(f"is a {type(item).__name__}, which cannot be passed to a script",
                         "pass None, bool, int, float, str, bytes, list, dict, arrays, Tensor, Buffer or Function")

    def _write_table(self, item, out):
        if len(self._path) >= DEPTH:
            self._refuse(f"is more than {DEPTH} levels of lists and dicts, or one that contains itself")
        table = Table()
        if isinstance(item, dict):
            pairs = list(item.items())
            table.fields, table.field_count = (Field * max(1, len(pairs)))(), len(pairs)
            for i, (name, value) in enumerate(pairs):
                if not isinstance(name, (str, bytes)):
                    self._refuse(f"has a key that is not a string but {type(name).__name__}",
                                 "use a list, or strings as keys")
                data = self._utf8(name, "has a key that is") if isinstance(name, str) else name
                self._kept.append(data)
                field = table.fields[i]
                field.name, field.name_size = ctypes.cast(data, c_void_p), len(data)
                self._write_inside(f".{name if isinstance(name, str) else repr(name)}", value, field.value)
        else:
            every = list(item)
            table.items, table.item_count = (Value * max(1, len(every)))(), len(every)
            for i, value in enumerate(every):
                self._write_inside(f"[{i + 1}]", value, table.items[i])
        self._kept.append(table)
        out.kind, out.of.table = TABLE, ctypes.pointer(table)

    def _write_inside(self, step, value, out):
        self._path.append(step)
        self._write(value, out)
        self._path.pop()


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
        self._runtime._free(lib.rille_script_function_drop, self._runtime._pointer, self._number)
