"""Memory that Python and scripts share without a copy: tensors and buffers, by DLPack and NumPy's array interface."""
import ctypes
import itertools
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p

from ._library import ReleaseFunction, View, check, lib
from ._native import Drop

# name in Rille: (DLPack's code and bits, NumPy's type string or None)
DTYPES = {"f32": ((2, 32), "<f4"), "f64": ((2, 64), "<f8"), "f16": ((2, 16), "<f2"), "bf16": ((4, 16), None),
          "i64": ((0, 64), "<i8"), "i32": ((0, 32), "<i4"), "i16": ((0, 16), "<i2"), "i8": ((0, 8), "|i1"),
          "u8": ((1, 8), "|u1"), "bool": ((6, 8), "|b1")}
NAMES = {code: name for name, (code, _) in DTYPES.items()}


class DLDevice(Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8),
                ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class DLManaged(Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, POINTER(DLManaged))
DLManaged._fields_ = [("tensor", DLTensor), ("context", c_void_p), ("deleter", Deleter)]
CPU = 1

_api = ctypes.pythonapi
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", _api))
_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, c_char_p)(("PyCapsule_SetName", _api))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _api))
_raw_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _api))
NAME, USED = b"dltensor", b"used_dltensor"  # PyCapsule keeps the pointers: these objects live for ever

# Python objects that other libraries still use, by the address of their description or a number.
_lent, _wrapped, _numbers = {}, {}, itertools.count(1)


# The defaults stay when the interpreter ends and empties the modules.
@Deleter
def _delete(managed, lent=_lent, is_finalizing=sys.is_finalizing, addressof=ctypes.addressof):
    if not is_finalizing():
        lent.pop(addressof(managed.contents), None)


@ctypes.PYFUNCTYPE(None, c_void_p)
def _capsule_gone(capsule, lent=_lent, is_finalizing=sys.is_finalizing):  # no consumer took the capsule's content
    if not is_finalizing() and _is_valid(capsule, NAME):
        lent.pop(_raw_pointer(capsule, NAME), None)


_api.Py_IncRef(ctypes.py_object((_lent, _delete, _capsule_gone)))  # other libraries call them until the process ends


@ReleaseFunction
def _released(_, payload):
    release = _wrapped.pop(payload, None)
    if release:
        release()


def _keep(release):
    number = next(_numbers)
    _wrapped[number] = release
    return number


class Memory:
    """Memory with a handle of Rille's; dropped with this object. It stays when the runtime is closed."""

    def __init__(self, runtime, handle):
        self._runtime, self._handle, self._seen = runtime, handle, None
        self._native = runtime._native
        self._key = self._native.use()

    def _view(self):
        if self._seen is None:
            view = View(struct_size=ctypes.sizeof(View))
            check(lib.rille_handle_view(self._runtime._live(), self._handle, byref(view)))
            self._seen = view
        return self._seen

    @property
    def address(self):
        return self._view().data

    @property
    def nbytes(self):
        return self._view().size

    def __del__(self):
        # Among garbage in a cycle, finalizers that run after this one may read the memory. An object that is made here
        # goes after all of them.
        self._drop = Drop(self._native, self._handle, self._key)


class Buffer(Memory):
    """Bytes. memoryview(buffer.bytes()) shares them; a script sees a Buffer."""

    def __len__(self):
        return self.nbytes

    def bytes(self):
        """The shared bytes, as an array of ctypes, which keeps this object alive."""
        array = (c_uint8 * self.nbytes).from_address(self.address)
        array._memory = self
        return array


class Tensor(Memory):
    """A tensor of the CPU, row-major. numpy.asarray(t), numpy.from_dlpack(t) and torch.from_dlpack(t) share it."""

    @property
    def shape(self):
        view = self._view()
        return tuple(view.shape[:view.rank])

    @property
    def dtype(self):
        return self._view().dtype.decode()

    @property
    def __array_interface__(self):
        kind = DTYPES[self.dtype][1]
        if kind is None:
            raise AttributeError(f"NumPy has no {self.dtype}: convert it in the script, as in t:to(\"f32\")")
        return {"shape": self.shape, "typestr": kind, "data": (self.address or 0, False), "version": 3}

    def numpy(self):
        """The tensor as a NumPy array that shares its memory."""
        import numpy
        return numpy.asarray(self)

    def __dlpack_device__(self):
        return (CPU, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or dl_device not in (None, (CPU, 0)):
            raise BufferError("rille: this memory is on the CPU, and is shared as it is")
        shape, (code, bits) = self.shape, DTYPES[self.dtype][0]
        managed, sizes = DLManaged(), (c_int64 * max(1, len(shape)))(*shape)
        managed.tensor = DLTensor(self.address, DLDevice(CPU, 0), len(shape), code, bits, 1,
                                  ctypes.cast(sizes, POINTER(c_int64)), None, 0)
        managed.deleter = _delete
        address = ctypes.addressof(managed)
        _lent[address] = (self, managed, sizes)
        return _capsule(address, NAME, ctypes.cast(_capsule_gone, c_void_p))


def received(runtime, handle):
    """The object for a borrowed handle, which it holds."""
    check(lib.rille_handle_hold(runtime._live(), handle))
    memory = Memory(runtime, handle)
    memory.__class__ = Buffer if memory._view().dtype is None else Tensor
    return memory


def buffer(runtime, data):
    """A Buffer over an object with writable bytes, such as a bytearray."""
    view = (ctypes.c_char * len(memoryview(data).cast("B"))).from_buffer(data)
    handle, number = c_uint64(), _keep(lambda kept=(data, view): None)
    failed = lib.rille_buffer_wrap(runtime._live(), ctypes.addressof(view), len(view), _released, number,
                                   byref(handle))
    if failed:
        _wrapped.pop(number)
    check(failed)
    return Buffer(runtime, handle.value)


def _strides_are_row_major(tensor):
    if not tensor.strides:
        return True
    step = 1
    for i in reversed(range(tensor.ndim)):
        if tensor.shape[i] != 1 and tensor.strides[i] != step:
            return False
        step *= tensor.shape[i]
    return True


def tensor(runtime, source):
    """A Tensor over an object with __dlpack__, such as a NumPy array or a PyTorch tensor, without a copy."""
    capsule = source.__dlpack__()
    managed = ctypes.cast(_pointer(capsule, NAME), POINTER(DLManaged))
    t = managed.contents.tensor
    name = NAMES.get((t.code, t.bits)) if t.lanes == 1 else None
    if t.device.type != CPU:
        raise BufferError("rille: this tensor is not on the CPU: copy it there first")
    if name is None:
        raise BufferError("rille: no dtype of Rille for this array; those are " + ", ".join(DTYPES))
    if not _strides_are_row_major(t):
        raise BufferError("rille: this array is not contiguous: pass numpy.ascontiguousarray(array)")
    _rename(capsule, USED)  # the capsule's content is ours now

    def release(managed=managed, source=source):
        if managed.contents.deleter:
            managed.contents.deleter(managed)

    handle, number = c_uint64(), _keep(release)
    failed = lib.rille_tensor_wrap(runtime._live(), t.data + t.byte_offset, name.encode(), t.shape, t.ndim, _released,
                                   number, byref(handle))
    if failed:
        _wrapped.pop(number)()
    check(failed)
    return Tensor(runtime, handle.value)
