"""Runtime, Run and Script."""
import asyncio
import base64
import ctypes
import inspect
import json
import select
import sys
import time
from collections import deque
from ctypes import byref, c_int, c_uint64, c_void_p

from . import _memory
from ._library import (EFFECTS, STATES, DoneFunction, Error, FunctionSpec, HostFunction, LogFunction, Options,
                       RunOptions, TextFunction, ValuesFunction, Value, check, error_of, lib, new_error, taken)
from ._native import Native
from ._values import Function, Lent, received

LIMITS = ("memory_bytes", "slice_ms", "wall_ms", "spend_micros", "leases_max", "cpu_ms", "output_bytes", "fibers_max",
          "disk_bytes")
LEVELS = ("debug", "info", "warn", "error")


class Runtime:
    """A runtime of Rille, of the thread that made it. Use it as a context manager, or call close().

    home, self_exe: as in rille.h. log(level, line). In a coroutine, asyncio's loop drives it; else Run.result and
    Run.wait do."""

    def __init__(self, home=None, self_exe=None, log=None, full_tracebacks=False, runs_max=None):
        self._pointer, self._kept, self._loop, self._timer, self._raised = None, [], None, None, None
        self._calls, self._last = {}, 0
        self._active, self._over = set(), []  # runs: their callbacks may be called; those that ended in this turn
        self._scripts, self._ending = set(), []  # pointers; callbacks of freed scripts, whose calls may still clean up
        self._left = deque()  # what other threads have dropped: functions that free, and their arguments
        options = Options()
        lib.rille_options_init(byref(options), ctypes.sizeof(Options))
        options.home = str(home).encode() if home is not None else None
        options.self_exe = str(self_exe).encode() if self_exe is not None else None
        options.full_tracebacks = full_tracebacks
        if runs_max is not None:
            options.runs_max = runs_max
        if log:
            options.log = self._keep(LogFunction(
                lambda level, line, size, _: self._guard(log, LEVELS[level], _shown(line, size))))
        pointer = c_void_p()
        check(lib.rille_create(byref(options), byref(pointer)))
        self._pointer = pointer.value
        self._values_done = ValuesFunction(self._call_ended)
        self._native = Native(self._pointer, (self._kept, self._values_done))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    async def __aenter__(self):
        self._attach()
        return self

    async def __aexit__(self, *_):
        self.close()

    def close(self, deadline_ms=5000):
        """Cancels what runs, lets scripts clean up for deadline_ms at most, and frees the runtime: without the memory
        that a Tensor, a Buffer or an array made from one still uses."""
        if not self._pointer:
            return
        failed = None
        try:
            check(lib.rille_shutdown(self._pointer, deadline_ms))
        except Error as e:
            if e.kind == "state":  # another thread's runtime, or inside a callback: nothing has happened
                raise
            failed = e
        self._detach()
        if failed is None:  # a shutdown that took too long has freed them
            while self._scripts:
                lib.rille_script_free(self._scripts.pop())
        self._pointer = None
        check(self._native.close())
        self._left.clear(), self._ending.clear()
        if failed:
            raise failed

    def module(self, name, functions=None, effect="pure", **more):
        """Registers Python functions as the module `name` for runs prepared later. A coroutine function lets the
        script's fiber wait. effect: "pure", "step" or "volatile", for all of them; or functions = {name: (function,
        effect)}."""
        every, kept = {**(functions or {}), **more}, []
        specs = (FunctionSpec * max(1, len(every)))()
        for spec, (function_name, function) in zip(specs, every.items()):
            function, its_effect = function if isinstance(function, tuple) else (function, effect)
            if its_effect not in EFFECTS:
                raise Error("invalid", f"'{its_effect}' is no effect", "one of " + ", ".join(EFFECTS))
            kept.append(HostFunction(self._host_function(function, f"{name}.{function_name}")))
            spec.struct_size, spec.name = ctypes.sizeof(FunctionSpec), function_name.encode()
            spec.effect, spec.function = EFFECTS[its_effect], kept[-1]
        check(lib.rille_register_module(self._live(), name.encode(), specs, len(every)))
        self._kept += kept

    def run(self, source, name="python", **options):
        """Prepares and starts a run of a script's text. options: args (a dict), grants (a dict of what the script may
        reach; by default nothing), rules ("workflow", "open"), module_folder, print, progress and event (callables),
        the limits of rille_run_options, and jit=True, which lets a script ask for machine code that nothing ends."""
        return self._start(lib.rille_run_from_source, name.encode(), source.encode(), len(source.encode()), options)

    def run_file(self, path, **options):
        return self._start(lib.rille_run_from_file, str(path).encode(), None, None, options)

    def resume(self, run="last", **options):
        """Continues a run of this home; register the same modules first."""
        return self._start(lib.rille_run_resume, run.encode(), None, None, options)

    def script(self, source, name="python", **options):
        """Loads a script that stays: its functions are called again and again."""
        callbacks, text, pointer = [], source.encode(), c_void_p()
        raw = self._run_options(options, callbacks)
        check(lib.rille_script_load(self._live(), name.encode(), text, len(text), byref(raw), byref(pointer)))
        return Script(self, pointer.value, callbacks)

    def tensor(self, array):
        """A Tensor that shares the memory of a NumPy array, a PyTorch tensor or another object with __dlpack__."""
        return _memory.tensor(self, array)

    def buffer(self, data):
        """A Buffer that shares the writable bytes of an object such as a bytearray."""
        return _memory.buffer(self, data)

    def runs(self, limit=20):
        text = c_void_p()
        check(lib.rille_runs(self._live(), limit, byref(text)))
        return json.loads(taken(text.value))

    def leases(self, all=False):
        text = c_void_p()
        check(lib.rille_leases(self._live(), all, byref(text)))
        return json.loads(taken(text.value))

    def interrupt(self):
        """Cancels every run, even one in an endless loop. Any thread."""
        lib.rille_interrupt(self._live())

    def turn(self, budget_ms=10):
        """Runs ready work for about that long. Returns whether a run is active."""
        busy = c_int()
        check(lib.rille_turn(self._live(), budget_ms, byref(busy)))
        self._over.clear()
        if not busy.value:
            self._ending.clear()
        raised, self._raised = self._raised, None
        if raised:
            raise raised
        return bool(busy.value)

    def drive(self, until, timeout=None):
        """Turns the loop until until() is true. TimeoutError after `timeout` seconds."""
        poll = select.poll()
        poll.register(lib.rille_poll_fd(self._live()), select.POLLIN)
        end = None if timeout is None else time.monotonic() + timeout
        while not until():
            wait = lib.rille_poll_timeout_ms(self._live())
            if end is not None:
                left = int(max(0, end - time.monotonic()) * 1000)
                if left == 0:
                    raise TimeoutError(f"not done after {timeout} s")
                wait = left if wait < 0 else min(wait, left)
            poll.poll(None if wait < 0 else wait)
            self.turn()

    # ---- inside the package

    def _live(self):
        if not self._pointer:
            raise Error("state", "the runtime is closed")
        if self._left and self._native.is_here():
            self._free_left()
        return self._pointer

    def _free(self, function, *arguments, is_finalizing=sys.is_finalizing):
        """Frees an object of the runtime: at once on the runtime's thread, else in the next call there."""
        if not self._pointer or is_finalizing():
            return
        if self._native.is_here():
            function(*arguments)
            return
        self._left.append((function, arguments))
        loop = self._loop
        if loop is not None:
            try:
                loop.call_soon_threadsafe(self._turn_now)
            except RuntimeError:  # the loop is closed
                pass

    def _free_left(self):
        while self._left:
            function, arguments = self._left.popleft()
            function(*arguments)

    def _free_script(self, pointer, callbacks):
        if pointer in self._scripts:  # else close() has freed it
            self._scripts.remove(pointer)
            self._ending += callbacks
            lib.rille_script_free(pointer)

    def _keep(self, thing):
        self._kept.append(thing)
        return thing

    def _guard(self, function, *arguments):
        try:
            return function(*arguments)
        except BaseException as e:  # ctypes would print and drop it
            self._raised = self._raised or e

    def _run_options(self, options, callbacks):
        raw = RunOptions()
        lib.rille_run_options_init(byref(raw), ctypes.sizeof(RunOptions))
        for name, value in options.items():
            if value is None:
                continue
            if name in LIMITS:
                setattr(raw, name, value)
            elif name == "jit":
                raw.jit = bool(value)
            elif name == "args":
                raw.args_json = json.dumps(value).encode()
            elif name == "grants":
                raw.grants = json.dumps(value).encode()
            elif name == "rules" and value in ("workflow", "open"):
                raw.rules = ("workflow", "open").index(value)
            elif name == "module_folder":
                raw.module_folder = str(value).encode()
            elif name in ("print", "progress", "event"):
                read = _shown if name == "print" else lambda data, size: json.loads(_shown(data, size))
                callbacks.append(TextFunction(
                    lambda data, size, _, tell=value, read=read: self._guard(lambda: tell(read(data, size)))))
                setattr(raw, name, callbacks[-1])
            else:
                known = ("args", "grants", "rules", "module_folder", "print", "progress", "event", "jit") + LIMITS
                raise Error("invalid", f"no option {name} = {value!r}", "options are " + ", ".join(known))
        return raw

    def _start(self, make, what, text, size, options):
        callbacks, pointer = [], c_void_p()
        raw = self._run_options(options, callbacks)
        middle = (text, size) if text is not None else ()
        check(make(self._live(), what, *middle, byref(raw), byref(pointer)))
        run = Run(self, pointer.value, callbacks)
        try:
            check(lib.rille_run_start(run._pointer))
        except Error:
            self._active.discard(run)
            raise
        self._changed()
        return run

    def _host_function(self, function, name):
        what = f"the result of {name}"

        def called(call, _):
            try:
                arguments = []
                for i in range(lib.rille_call_count(call)):
                    value = Value()
                    check(lib.rille_call_value(call, i, byref(value)))
                    arguments.append(received(self, value))
                result = function(*arguments)
                if inspect.isawaitable(result):
                    self._suspend(call, result, what)
                else:
                    lent = Lent(self, [result], what)
                    lib.rille_call_return_value(call, lent.values)
            except Exception as e:
                lib.rille_call_fail(call, new_error(e))
            except BaseException as e:  # such as KeyboardInterrupt: raised again in the caller of the turn
                lib.rille_call_fail(call, new_error(Error("cancelled", type(e).__name__)))
                self._raised = self._raised or e
        return called

    def _suspend(self, call, awaitable, what):
        if self._loop is None:
            awaitable.close() if inspect.iscoroutine(awaitable) else None
            raise Error("state", "a coroutine function needs asyncio's loop", "await the run in a coroutine")
        task = asyncio.ensure_future(awaitable, loop=self._loop)
        completion = lib.rille_call_suspend(call)
        if completion is None:
            task.cancel()
            return

        def ended(done):
            try:
                lent = Lent(self, [done.result()], what)
            except asyncio.CancelledError:
                lib.rille_completion_reject(completion, None)
            except BaseException as e:
                lib.rille_completion_reject(completion, new_error(e))
            else:
                lib.rille_completion_resolve_value(completion, lent.values)
            self._changed()
        task.add_done_callback(ended)

    def _begin(self, function, arguments):
        self._attach()
        future, lent, number = self._loop.create_future(), Lent(self, arguments), c_uint64()
        self._last += 1
        self._calls[self._last] = future
        failed = lib.rille_script_begin(self._live(), function._number, lent.values, len(arguments), self._values_done,
                                        self._last, byref(number))
        if failed:
            del self._calls[self._last]
        check(failed)
        self._changed()
        return future

    def _call_ended(self, error, values, count, payload):
        future = self._calls.pop(payload, None)
        if future is None or future.done():
            return
        try:
            if error:
                raise error_of(error)
            future.set_result(received(self, values[0]) if count else None)
        except Exception as e:
            future.set_exception(e)

    # asyncio: a reader of the descriptor and a timer, set anew after each turn

    def _attach(self):
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        self._detach()
        self._loop = loop
        loop.add_reader(lib.rille_poll_fd(self._live()), self._turn_now)

    def _detach(self):
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(lib.rille_poll_fd(self._live()))
        if self._timer is not None:
            self._timer.cancel()
        self._loop = self._timer = None

    def _changed(self):
        if self._loop is not None:
            if self._timer is not None:
                self._timer.cancel()  # it may be far away
            self._timer = self._loop.call_soon(self._turn_now)

    def _turn_now(self):
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._pointer:
            return
        try:
            self.turn()
        finally:
            if self._loop is not None and self._timer is None:
                wait = lib.rille_poll_timeout_ms(self._pointer)
                if wait == 0:
                    self._timer = self._loop.call_soon(self._turn_now)
                elif wait > 0:
                    self._timer = self._loop.call_later(wait / 1000, self._turn_now)


class Run:
    """A run. `await run` or run.result() gives the script's result, or raises its Error."""

    def __init__(self, runtime, pointer, callbacks):
        self._runtime, self._pointer, self._callbacks, self._futures = runtime, pointer, callbacks, []
        self._done = DoneFunction(self._ended)
        check(lib.rille_run_on_done(pointer, self._done, None))
        runtime._active.add(self)

    @property
    def id(self):
        return lib.rille_run_id(self._live()).decode()

    @property
    def state(self):
        return STATES[lib.rille_run_state(self._live())]

    @property
    def active(self):
        return self.state in ("new", "running")

    def cancel(self, reason=""):
        check(lib.rille_run_cancel(self._live(), reason.encode()))
        self._runtime._changed()

    def wait(self, timeout=None):
        """Drives the loop until the run has ended. A KeyboardInterrupt cancels the run first."""
        try:
            self._runtime.drive(lambda: not self.active, timeout)
        except KeyboardInterrupt:
            self.cancel("KeyboardInterrupt")
            self._runtime.drive(lambda: not self.active)
            raise

    def result(self, timeout=None):
        self.wait(timeout)
        return self._outcome()

    def __await__(self):
        self._runtime._attach()
        self._runtime._changed()
        if self.active:
            future = self._runtime._loop.create_future()
            self._futures.append(future)
            try:
                return (yield from future)
            except asyncio.CancelledError:
                if self._runtime._pointer and self.active:
                    self.cancel("the task was cancelled")
                raise
        return self._outcome()

    def _ended(self, *_):
        self._runtime._active.discard(self)
        self._runtime._over.append(self)  # keeps this callback alive while it runs
        futures, self._futures = self._futures, []
        for future in futures:
            if future.done():
                continue
            try:
                future.set_result(self._outcome())
            except Exception as e:
                future.set_exception(e)

    def _outcome(self):
        error = lib.rille_run_error(self._live())
        if error:
            raise error_of(error)
        if self.state != "done":
            raise Error("state", f"the run is {self.state}", "runtime.resume continues a suspended run")
        text = lib.rille_run_result(self._pointer, None)
        return _plain(json.loads(text)) if text else None

    def _live(self):
        self._runtime._live()
        return self._pointer

    def __del__(self):
        self._runtime._free(lib.rille_run_free, self._pointer)


class Script:
    """A script that stays loaded. script["name"], or script.name, is a Function."""

    def __init__(self, runtime, pointer, callbacks):
        self._runtime, self._pointer, self._callbacks = runtime, pointer, callbacks
        runtime._scripts.add(pointer)

    def __getitem__(self, name):
        number = c_uint64()
        self._runtime._live()
        check(lib.rille_script_find(self._pointer, name.encode(), byref(number)))
        return Function(self._runtime, number.value, self)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __del__(self):
        self._runtime._free(self._runtime._free_script, self._pointer, self._callbacks)


def _shown(data, size):
    return ctypes.string_at(data, size).decode("utf-8", "replace") if size else ""


def _plain(value):
    """JSON as rille.h writes it: {"$num": "nan"}, {"$bytes": base64}, {"$map": pairs}, and "$$x" for "$x"."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (key, inside), = value.items()
        if key == "$num":
            return float(inside)
        if key == "$bytes":
            return base64.b64decode(inside)
        if key == "$map":
            return {_plain(k): _plain(v) for k, v in inside}
    return {(k[1:] if k.startswith("$$") else k): _plain(v) for k, v in value.items()}
