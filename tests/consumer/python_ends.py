"""Python objects that end in any order and on any thread, and values that scripts cannot have: memory outlives its
runtime, what is refused or dropped is freed, and every bad value is an error of the script that names it."""
import asyncio, fractions, gc, os, subprocess, sys, threading, weakref

import numpy

import rille

BIG = 1 << 20  # elements: the memory is a mapping of its own, and is unmapped when it is freed
OPEN = dict(rules="open")
MAKE = """local cpu = require('rille').device('cpu')
    return { ones = function(n) return cpu:ones({n}) + 1 end, same = function(v) return v end }"""
count = 0


def check(name, ok, detail=""):
    global count
    count += 1
    print(f"{'ok' if ok else 'not ok'} {count} - {name}" + ("" if ok else f"\n#   {detail!r}"), flush=True)
    if not ok:
        sys.exit(1)


def refused(kind, words, function, *arguments):
    try:
        got = function(*arguments)
    except rille.Error as e:
        check(f"refused: {words}", e.kind == kind and words in e.message, (e.kind, e.message))
    else:
        check(f"refused: {words}", False, got)


def on_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def descriptors():
    return len(os.listdir("/proc/self/fd"))


# ---- memory that outlives its runtime

def lent(how):
    """What `how` makes of a tensor of a script, after the runtime was closed."""
    with rille.Runtime() as runtime:
        return how(runtime.script(MAKE).ones(BIG))


def len_of(tensor):
    return tensor.nbytes


def memory():
    lent(len_of)  # the process keeps some descriptors from its first runtime
    before = descriptors()
    for name, how in (("asarray", numpy.asarray), ("from_dlpack", numpy.from_dlpack), ("numpy", lambda t: t.numpy()),
                      ("a slice", lambda t: t.numpy()[7:]), ("the Tensor", lambda t: t)):
        shared = lent(how)
        gc.collect()
        array = numpy.asarray(shared)
        check(f"{name}: valid after close", (array == 2).all() and (array + 1)[-1] == 3)
        del array
        check(f"{name}: keeps the runtime", descriptors() > before)
        del shared
        check(f"{name}: frees it", descriptors() == before, (before, descriptors()))
    both = [lent(numpy.asarray), lent(numpy.from_dlpack)]
    for _ in range(2):
        on_thread(lambda: both.pop())
        check("the rest is valid after another thread has dropped one", all((a == 2).all() for a in both))
    check("the last thread frees it", descriptors() == before, (before, descriptors()))
    several(before)


def several(before):
    runtime = rille.Runtime()
    script, run = runtime.script(MAKE), runtime.run("return 1")
    own = numpy.ones(BIG, dtype="float32")
    arrays = [script.ones(BIG).numpy(), numpy.from_dlpack(script.ones(BIG)), numpy.asarray(script.same(own))]
    left, gone = weakref.ref(own), threading.Barrier(3)
    del own
    runtime.close()
    check("an array that went to a script and back is valid", (arrays[2] == 1).all())

    def drop(box):
        gone.wait()
        box.clear()
    threads = [threading.Thread(target=drop, args=([arrays.pop()],)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("three threads free a runtime once", descriptors() == before and left() is None, (before, descriptors()))
    for function in (script.__getitem__, runtime.run, run.cancel, lambda _: run.state, lambda _: run.result(),
                     lambda _: runtime.tensor(numpy.ones(2))):
        refused("state", "the runtime is closed", function, "same")


class Reader:
    """Garbage in a cycle, which reads the memory when it goes."""
    seen = []

    def __init__(self, **things):
        self.me, self.things = self, things

    def __del__(self):
        if "bytes" in self.things:
            Reader.seen.append(self.things["bytes"][BIG - 1])
        Reader.seen.append(float(numpy.asarray(self.things["tensor"])[-1]))


def cycles():
    source = bytearray(b"x" * BIG)
    with rille.Runtime() as runtime:
        script = runtime.script(MAKE)
        for keep in (True, False):
            t, b = script.ones(BIG), script.same(runtime.buffer(source))
            Reader(bytes=b.bytes(), tensor=t, memory=b)
            del t, b
            gc.collect()
        check("finalizers of a cycle see the memory", Reader.seen == [120, 2.0] * 2, Reader.seen)
        Reader(tensor=script.ones(BIG))
    gc.collect()
    check("also after close", Reader.seen[4:] == [2.0], Reader.seen)


AT_EXIT = """
import numpy, rille, sys, threading
runtime = rille.Runtime()
script = runtime.script("return { ones = function(n) return require('rille').device('cpu'):ones({n}) + 1 end }")
kept = [numpy.from_dlpack(script.ones(1 << 20)), script.ones(1 << 20).numpy(), script.ones(1 << 20).__dlpack__()]
class Last:
    def __init__(self): self.me, self.arrays = self, kept[:2]
    def __del__(self, out=sys.__stdout__): print([float(a[-1]) for a in self.arrays], file=out, flush=True)
last = Last()
sys.modules["keeps_it_longer"] = kept
if sys.argv[1] == "closed": runtime.close()
"""


def at_exit():
    for how in ("closed", "open"):
        done = subprocess.run([sys.executable, "-c", AT_EXIT, how], capture_output=True, text=True)
        check(f"the interpreter ends with arrays of a runtime that is {how}",
              (done.returncode, done.stdout, done.stderr) == (0, "[2.0, 2.0]\n", ""), done)


# ---- what is refused or dropped is freed

class Sink:
    def __call__(self, *_):
        return None


def is_freed(name, use):
    """use(sink) passes the sink to a runtime, and drops what it made."""
    sink = Sink()
    left = weakref.ref(sink)
    use(sink)
    del sink
    gc.collect()
    check(f"{name}: its callbacks are freed", left() is None, gc.get_referrers(left()))


def callbacks():
    def refuse(function, *arguments, **options):
        try:
            function(*arguments, **options)
        except rille.Error:
            return
        check("refused", False, (arguments, options))

    with rille.Runtime(runs_max=1) as runtime:
        for make in (runtime.run, runtime.script):
            what = make.__name__
            is_freed(f"{what}, syntax", lambda s: refuse(make, "return {", print=s, progress=s, event=s))
            is_freed(f"{what}, option", lambda s: refuse(make, "return 1", print=s, wall=3))
            is_freed(f"{what}, limit", lambda s: refuse(make, "return 1", print=s, memory_bytes=-5))
            is_freed(f"{what}, grants", lambda s: refuse(make, "return 1", print=s, grants={"raed": True}))
        is_freed("script, error", lambda s: refuse(runtime.script, "error('no')", print=s))
        is_freed("file", lambda s: refuse(runtime.run_file, "/dev/null/none", print=s))
        is_freed("resume", lambda s: refuse(runtime.resume, "none", print=s))
        first = runtime.run("require('rille').sleep('1h')")
        is_freed("run, runs_max", lambda s: refuse(runtime.run, "return 1", print=s))
        first.cancel()
        first.wait()
        runtime.module("app", f=len)
        is_freed("module", lambda s: refuse(runtime.module, "app", f=s))
        is_freed("module, name", lambda s: refuse(runtime.module, "no name", f=s))

        def loaded(sink):
            runtime.script("print('x') return { f = print }", print=sink).f(1)
            runtime.turn()
        is_freed("script, freed", loaded)
    check("close on another thread is refused, and changes nothing", foreign_close())


def foreign_close():
    with rille.Runtime() as runtime:
        kinds = []

        def close():
            try:
                runtime.close()
            except rille.Error as e:
                kinds.append(e.kind)
        on_thread(close)
        return kinds == ["state"] and runtime.run("return 7").result() == 7


def dropped():
    """A runtime has at most 1000 scripts, so that those which are not freed are noticed."""
    with rille.Runtime() as runtime:
        for _ in range(1100):
            box = [runtime.script("return { f = function() return 1 end }", print=Sink())]
            box.append(box[0].f)
            on_thread(box.clear)
        check("scripts dropped on another thread are freed", runtime.script("return { f = print }").f is not None)
        runtime.turn()
        check("with their callbacks", not runtime._ending and not runtime._left)
        box = [runtime.run("return 1") for _ in range(3)]
        box[0].wait()
        box[1].wait()
        on_thread(box.clear)
        runtime.drive(lambda: not runtime._active)
        gc.collect()
        check("runs, too", not runtime._left)
        sink = Sink()
        left, box = weakref.ref(sink), [runtime.script("return 1", print=sink)]
        del sink
        on_thread(box.clear)
    check("what was left at close is freed", left() is None)


# ---- values that scripts cannot have

class BadText(Exception):
    def __str__(self):
        raise KeyError("no text")


class BadError(rille.Error):
    def __init__(self):
        pass


class BadNumber:
    def __float__(self):
        raise OSError("no number")


class BadArray:
    @property
    def __dlpack__(self):
        raise LookupError("no array")


def shared(depth):
    every = []
    for _ in range(depth):
        every = [every, every]
    return every


def raises(error):
    raise error


endless = {}
endless["again"] = [endless]
BAD = {  # name: (a function with the value, kind, words of the error)
    "surrogate": (lambda: {"a": [1, "x\ud800"]}, "invalid", "a[2] is text that is not UTF-8: '\\ud800' at position 1"),
    "key": (lambda: {"\udcff": 1}, "invalid", "has a key that is text that is not UTF-8"),
    "number_key": (lambda: {1: 2}, "invalid", "has a key that is not a string but int"),
    "huge": (lambda: [10 ** 5000], "invalid", "[1] is an integer of 16610 bits"),
    "large": (lambda: -2 ** 53 - 1, "invalid", "is an integer of 54 bits"),
    "numpy": (lambda: numpy.int64(2 ** 60 + 1), "invalid", "is an integer of 61 bits"),
    "numpy_unsigned": (lambda: [numpy.uint64(2 ** 64 - 1)], "invalid", "[1] is an integer of 64 bits"),
    "fraction": (lambda: fractions.Fraction(10 ** 400), "invalid", "is a Fraction that gives no number: OverflowError"),
    "no_float": (BadNumber, "invalid", "is a BadNumber that gives no number: OSError"),
    "no_array": (BadArray, "internal", "LookupError: no array"),
    "cycle": (lambda: endless, "invalid", "is more than 100 levels of lists and dicts"),
    "object": (object, "invalid", "is a object, which cannot be passed"),
    "transposed": (lambda: numpy.ones((2, 3)).T, "internal", "BufferError"),
    "raised_text": (lambda: raises(ValueError("a\ud800\0b")), "internal", "ValueError: a\\ud800\\x00b"),
    "raised_error": (lambda: raises(rille.Error("quota", "\ud800", "\udfff")), "quota", "\\ud800"),
    "raised_kind": (lambda: raises(rille.Error("none", "odd kind")), "internal", "odd kind"),
    "no_text": (lambda: raises(BadText()), "internal", "BadText, whose message fails with KeyError"),
    "no_fields": (lambda: raises(BadError()), "internal", "BadError, whose message fails with AttributeError"),
}


def functions(runtime, wrap):
    runtime.module("bad", {name: (wrap(make), "volatile") for name, (make, _, _) in BAD.items()})


def refusals():
    with rille.Runtime() as runtime:
        functions(runtime, lambda make: make)
        for name, (_, kind, words) in BAD.items():
            refused(kind, words, runtime.run(f"return require('bad').{name}()", **OPEN).result, 60)
        try:
            runtime.run("return require('bad').surrogate()", **OPEN).result()
        except rille.Error as e:
            check("the error names the function", e.message.startswith("the result of bad.surrogate.a[2] is"), e)
        runtime.module("fine", nan=lambda: float("nan"), raw=lambda: b"\xff\0", numbers=lambda: [
            2 ** 53, numpy.int64(-2 ** 53), numpy.uint8(3), numpy.float32(0.5), numpy.bool_(True)])
        got = runtime.run("local f = require 'fine' return { f.nan(), f.raw(), f.numbers() }").result()
        check("NaN, bytes, 2^53 and NumPy's scalars", got[0] != got[0] and
              got[1:] == [b"\xff\0", [2 ** 53, -2 ** 53, 3, 0.5, 1]], got)
        same = runtime.script(MAKE).same
        refused("invalid", "argument 1.a is text", same, {"a": "\ud800"})
        refused("invalid", "argument 2[1] is an integer", same, 1, [2 ** 60])
        with rille.Runtime() as other:
            refused("invalid", "of another runtime", same, other.script(MAKE).ones(2))
            refused("invalid", "of another runtime", same, other.script(MAKE).same)


def many_values():
    with rille.Runtime() as runtime:
        before, rille._values.VALUES = rille._values.VALUES, 1000
        refused("invalid", "10 million values", runtime.script(MAKE).same, shared(60))
        rille._values.VALUES = before


async def coroutines():
    def late(make):
        async def function():
            await asyncio.sleep(0)
            return make()
        return function

    async with rille.Runtime() as runtime:
        functions(runtime, late)
        for name, (_, kind, words) in BAD.items():
            try:
                got = await asyncio.wait_for(runtime.run(f"return require('bad').{name}()", **OPEN), 60)
                check(f"a coroutine: {name}", False, got)
            except rille.Error as e:
                check(f"a coroutine: {name}", e.kind == kind and words in e.message, (e.kind, e.message))
        other = asyncio.new_event_loop()
        runtime.module("foreign", effect="volatile", future=other.create_future, odd=lambda: Odd())
        for name, words in (("future", "different loop"), ("odd", "TypeError")):
            try:
                got = await asyncio.wait_for(runtime.run(f"return require('foreign').{name}()", **OPEN), 60)
                check(f"an awaitable: {name}", False, got)
            except rille.Error as e:
                check(f"an awaitable: {name}", words in e.message, e.message)
        other.close()
        waits = [asyncio.ensure_future(outcome(runtime.run(text))) for text in
                 ("return 5", "error('no')", "require('rille').sleep('1h')")]
        await asyncio.sleep(0)
    kinds = [w if isinstance(w, int) else w.kind for w in await asyncio.gather(*waits)]
    check("runs that close() ended tell their outcome", kinds[2] == "cancelled" and len(kinds) == 3, kinds)


async def outcome(run):
    try:
        return await run
    except rille.Error as e:
        return e


class Odd:
    def __await__(self):
        return 5


for part in (memory, cycles, at_exit, callbacks, dropped, refusals, many_values):
    part()
asyncio.run(coroutines())
print(f"1..{count}")
