"""A rille_runtime. It is destroyed when its Runtime has been closed and nothing uses its memory any more: arrays may
outlive the Runtime."""
import sys
import threading

from ._library import lib


class Native:
    def __init__(self, pointer, kept):
        self.pointer, self.thread, self._closed = pointer, threading.get_ident(), False
        self._kept = kept             # callbacks that the runtime may call until it is destroyed
        self._users = set()           # the Memory objects, by key
        self._alive = [pointer]       # emptied by the thread that destroys the runtime

    def is_here(self):
        """Whether this is the runtime's thread."""
        return threading.get_ident() == self.thread

    def use(self):
        """A key for a new user of the runtime's memory."""
        key = object()
        self._users.add(key)
        return key

    def drop(self, handle, key):
        """Drops the handle of a user. Any thread."""
        lib.rille_handle_drop(self.pointer, handle)
        self._users.discard(key)
        lib.rille_error_free(self._destroy_unused())

    def close(self):
        """Destroys the runtime, now or with its last user. Returns an owned rille_error*, or None."""
        self._closed = True
        return self._destroy_unused()

    def _destroy_unused(self):
        if not self._closed or self._users:
            return None
        try:
            pointer = self._alive.pop()
        except IndexError:
            return None
        lib.rille_error_free(lib.rille_adopt(pointer))  # no thread calls a closed runtime; in a forked child both fail
        return lib.rille_destroy(pointer)


class Drop:
    """Drops a handle when this object goes. At the end of the interpreter memory stays until the process ends: what
    shares it may go later."""

    def __init__(self, native, handle, key):
        self._native, self._handle, self._key = native, handle, key

    def __del__(self, is_finalizing=sys.is_finalizing):
        if not is_finalizing():
            self._native.drop(self._handle, self._key)
