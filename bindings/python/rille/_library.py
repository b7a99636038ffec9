"""librille by ctypes: the types and functions of rille.h that the package uses."""
import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, Union, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64,
                    c_void_p)

ABI_VERSION = 1
KINDS = ("invalid", "config", "auth", "quota", "capacity", "network", "timeout", "cancelled", "budget", "state", "io",
         "integrity", "device", "memory", "divergence", "internal", "denied")
STATES = ("new", "running", "done", "failed", "cancelled", "suspended")
EFFECTS = {"pure": 0, "step": 1, "volatile": 2}
NIL, BOOL, NUMBER, INTEGER, BYTES, TABLE, HANDLE, FUNCTION = range(8)


class Bytes(Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class Table(Structure):
    pass


class As(Union):
    _fields_ = [("boolean", c_int), ("number", c_double), ("integer", c_int64), ("bytes", Bytes),
                ("table", POINTER(Table)), ("handle", c_uint64), ("function", c_uint64)]


class Value(Structure):
    _fields_ = [("kind", c_int), ("of", As)]


class Field(Structure):
    _fields_ = [("name", c_void_p), ("name_size", c_size_t), ("value", Value)]


Table._fields_ = [("items", POINTER(Value)), ("item_count", c_size_t), ("fields", POINTER(Field)),
                  ("field_count", c_size_t)]


class View(Structure):
    _fields_ = [("struct_size", c_size_t), ("data", c_void_p), ("size", c_size_t), ("dtype", c_char_p),
                ("rank", c_size_t), ("shape", c_int64 * 8)]


LogFunction = CFUNCTYPE(None, c_int, c_void_p, c_size_t, c_void_p)
TextFunction = CFUNCTYPE(None, c_void_p, c_size_t, c_void_p)
DoneFunction = CFUNCTYPE(None, c_void_p, c_void_p)
ValuesFunction = CFUNCTYPE(None, c_void_p, POINTER(Value), c_size_t, c_void_p)
ReleaseFunction = CFUNCTYPE(None, c_void_p, c_void_p)
HostFunction = CFUNCTYPE(None, c_void_p, c_void_p)


class Options(Structure):
    _fields_ = [("struct_size", c_size_t), ("home", c_char_p), ("self_exe", c_char_p), ("log", LogFunction),
                ("log_payload", c_void_p), ("full_tracebacks", c_int), ("runs_max", c_int)]


class RunOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("rules", c_int), ("args_json", c_char_p), ("module_folder", c_char_p),
                ("print", TextFunction), ("progress", TextFunction), ("event", TextFunction), ("payload", c_void_p),
                ("memory_bytes", c_int64), ("slice_ms", c_int64), ("wall_ms", c_int64), ("spend_micros", c_int64),
                ("leases_max", c_int64), ("cpu_ms", c_int64), ("output_bytes", c_int64), ("fibers_max", c_int64),
                ("grants", c_char_p), ("disk_bytes", c_int64), ("jit", c_int)]


class FunctionSpec(Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("effect", c_int), ("function", HostFunction),
                ("payload", c_void_p)]


# name: (result, arguments). Functions that return a rille_error* have c_void_p.
PROTOTYPES = {
    "rille_version": (c_char_p, []),
    "rille_abi_check": (c_int, [c_int]),
    "rille_error_create": (c_void_p, [c_int, c_char_p, c_char_p]),
    "rille_error_kind": (c_int, [c_void_p]),
    "rille_error_message": (c_char_p, [c_void_p]),
    "rille_error_hint": (c_char_p, [c_void_p]),
    "rille_error_code": (c_char_p, [c_void_p]),
    "rille_error_traceback": (c_char_p, [c_void_p]),
    "rille_error_retryable": (c_int, [c_void_p]),
    "rille_error_to_json": (c_char_p, [c_void_p]),
    "rille_error_free": (None, [c_void_p]),
    "rille_free": (None, [c_void_p]),
    "rille_options_init": (None, [POINTER(Options), c_size_t]),
    "rille_create": (c_void_p, [POINTER(Options), POINTER(c_void_p)]),
    "rille_shutdown": (c_void_p, [c_void_p, c_int64]),
    "rille_adopt": (c_void_p, [c_void_p]),
    "rille_destroy": (c_void_p, [c_void_p]),
    "rille_poll_fd": (c_int, [c_void_p]),
    "rille_poll_timeout_ms": (c_int, [c_void_p]),
    "rille_turn": (c_void_p, [c_void_p, c_int, POINTER(c_int)]),
    "rille_interrupt": (None, [c_void_p]),
    "rille_run_options_init": (None, [POINTER(RunOptions), c_size_t]),
    "rille_run_from_source": (c_void_p, [c_void_p, c_char_p, c_char_p, c_size_t, POINTER(RunOptions),
                                         POINTER(c_void_p)]),
    "rille_run_from_file": (c_void_p, [c_void_p, c_char_p, POINTER(RunOptions), POINTER(c_void_p)]),
    "rille_run_resume": (c_void_p, [c_void_p, c_char_p, POINTER(RunOptions), POINTER(c_void_p)]),
    "rille_run_start": (c_void_p, [c_void_p]),
    "rille_run_cancel": (c_void_p, [c_void_p, c_char_p]),
    "rille_run_on_done": (c_void_p, [c_void_p, DoneFunction, c_void_p]),
    "rille_run_id": (c_char_p, [c_void_p]),
    "rille_run_state": (c_int, [c_void_p]),
    "rille_run_result": (c_char_p, [c_void_p, c_void_p]),
    "rille_run_error": (c_void_p, [c_void_p]),
    "rille_run_free": (None, [c_void_p]),
    "rille_runs": (c_void_p, [c_void_p, c_int, POINTER(c_void_p)]),
    "rille_leases": (c_void_p, [c_void_p, c_int, POINTER(c_void_p)]),
    "rille_register_module": (c_void_p, [c_void_p, c_char_p, POINTER(FunctionSpec), c_size_t]),
    "rille_call_count": (c_size_t, [c_void_p]),
    "rille_call_value": (c_void_p, [c_void_p, c_size_t, POINTER(Value)]),
    "rille_call_return_value": (None, [c_void_p, POINTER(Value)]),
    "rille_call_fail": (None, [c_void_p, c_void_p]),
    "rille_call_suspend": (c_void_p, [c_void_p]),
    "rille_completion_resolve_value": (None, [c_void_p, POINTER(Value)]),
    "rille_completion_reject": (None, [c_void_p, c_void_p]),
    "rille_buffer_wrap": (c_void_p, [c_void_p, c_void_p, c_size_t, ReleaseFunction, c_void_p, POINTER(c_uint64)]),
    "rille_tensor_wrap": (c_void_p, [c_void_p, c_void_p, c_char_p, POINTER(c_int64), c_size_t, ReleaseFunction,
                                     c_void_p, POINTER(c_uint64)]),
    "rille_handle_view": (c_void_p, [c_void_p, c_uint64, POINTER(View)]),
    "rille_handle_hold": (c_void_p, [c_void_p, c_uint64]),
    "rille_handle_drop": (None, [c_void_p, c_uint64]),
    "rille_script_load": (c_void_p, [c_void_p, c_char_p, c_char_p, c_size_t, POINTER(RunOptions), POINTER(c_void_p)]),
    "rille_script_find": (c_void_p, [c_void_p, c_char_p, POINTER(c_uint64)]),
    "rille_script_call": (c_void_p, [c_void_p, c_uint64, POINTER(Value), c_size_t, POINTER(Value), c_size_t]),
    "rille_script_begin": (c_void_p, [c_void_p, c_uint64, POINTER(Value), c_size_t, ValuesFunction, c_void_p,
                                      POINTER(c_uint64)]),
    "rille_script_cancel": (c_void_p, [c_void_p, c_uint64, c_char_p]),
    "rille_script_function_hold": (c_void_p, [c_void_p, c_uint64]),
    "rille_script_function_drop": (None, [c_void_p, c_uint64]),
    "rille_script_free": (None, [c_void_p]),
}


def _open():
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "librille.so")
    places = [os.environ.get("RILLE_LIBRARY"), beside if os.path.exists(beside) else None, "librille.so.0"]
    place = next(p for p in places if p)
    try:
        library = ctypes.CDLL(place)
    except OSError as e:
        raise ImportError(f"rille: {place} cannot be loaded: {e}\nbuild it (./bootstrap build) and name it by "
                          "RILLE_LIBRARY, or install it where the loader looks") from e
    if not library.rille_abi_check(ABI_VERSION):
        raise ImportError(f"rille: {place} has another ABI than {ABI_VERSION}: install the package of its version")
    for name, (result, arguments) in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


lib = _open()


class Error(Exception):
    """An error of Rille. `kind` is one of rille.KINDS; `hint` says what to do next."""

    def __init__(self, kind, message, hint="", code="", traceback="", retryable=False):
        super().__init__(message + (f"\nhint: {hint}" if hint else ""))
        self.kind, self.message, self.hint, self.code = kind, message, hint, code
        self.traceback, self.retryable = traceback, retryable


def error_of(pointer):
    """The Error with the fields of a borrowed rille_error*."""
    text = lambda field: getattr(lib, "rille_error_" + field)(pointer).decode("utf-8", "replace")
    return Error(KINDS[lib.rille_error_kind(pointer)], text("message"), text("hint"), text("code"), text("traceback"),
                 bool(lib.rille_error_retryable(pointer)))


def check(pointer):
    """Raises the Error of an owned rille_error*, which is freed; None is success."""
    if pointer:
        try:
            error = error_of(pointer)
        finally:
            lib.rille_error_free(pointer)
        raise error


def _told(text):
    """Bytes of a text for people: what UTF-8 or C cannot hold is escaped."""
    return str(text).encode("utf-8", "backslashreplace").replace(b"\0", b"\\x00")


def new_error(error):
    """An owned rille_error* for an exception, whatever its texts are."""
    kind, hint = "internal", None
    try:
        if isinstance(error, Error):
            kind = error.kind if error.kind in KINDS else kind
            message, hint = _told(error.message), _told(error.hint)
        else:
            message = _told(f"{type(error).__name__}: {error}")
    except BaseException as e:  # of the exception's own code
        message = _told(f"{type(error).__name__}, whose message fails with {type(e).__name__}")
    return lib.rille_error_create(KINDS.index(kind), message, hint)


def taken(pointer):
    """An owned text as str; it is freed."""
    try:
        return ctypes.string_at(pointer).decode()
    finally:
        lib.rille_free(pointer)
