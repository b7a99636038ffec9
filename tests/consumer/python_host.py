"""A Python program with Rille in it, which checks what docs/manual/python.md says."""
import asyncio, gc, os, signal, sys, threading, time

import numpy

import rille

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
        check(f"refused: {words}", e.kind == kind and words in str(e), str(e))
    else:
        check(f"refused: {words}", False, got)


def runs(runtime):
    out = []
    runtime.module("app", greet=lambda name: f"hello, {name}",
                   add=lambda t: {"sum": t["a"] + t["b"], "list": [1, "two"]})
    runtime.module("bad", effect="volatile", bug=lambda: 1 / 0, odd=lambda: object(), quota=no_more)
    run = runtime.run("""local rille, app = require "rille", require "app"
        print(app.greet(rille.args({ who = "nobody" }).who))
        return { app.add { a = 1, b = 2 }.sum, 0 / 0, "\\255" }""", args={"who": "moon"}, print=out.append)
    result = run.result()
    check("a run's result", result[0] == 3 and result[1] != result[1] and result[2] == b"\xff", result)
    check("its output and state", out == ["hello, moon\n"] and run.state == "done", out)
    check("it is listed", run.id in [row.get("id") for row in runtime.runs()], runtime.runs())
    refused("invalid", "near", runtime.run, "return {")
    for name, kind, words in (("bug", "internal", "ZeroDivisionError"), ("odd", "invalid", "object"),
                              ("quota", "quota", "wait a day")):
        refused(kind, words, runtime.run(f"require('bad').{name}()", rules="open").result)
    refused("timeout", "slice", runtime.run("while true do end", slice_ms=50).result)
    refused("invalid", "no option", lambda: runtime.run("return 1", wall=3))


def no_more():
    raise rille.Error("quota", "no more", "wait a day")


def values(runtime):
    script = runtime.script("""local n = 0
        return { add = function(x) n = n + x return n end, same = function(v) return v end,
                 make = function() return function(x) return x + 1 end end, two = function() return 1, { 2 } end }""")
    check("state between calls", [script.add(2), script.add(3)] == [2, 5])
    check("several results", script["two"](results=2) == (1, [2]))
    same = script.same
    for v in (None, True, False, 3, -2.5, "text", "é", b"\xff\x00", [1, [2, "x"]], {"a": {"b": [1]}}, []):
        check(f"{v!r} comes back", same(v) == v and type(same(v)) is type(v), same(v))
    check("a function of the script", script.make()(41) == 42)
    add = runtime.script("return { add = function(x) return x + 1 end }").add
    gc.collect()
    check("a function keeps its script", add(1) == 2)
    endless = []
    endless.append(endless)
    refused("invalid", "levels", same, endless)
    refused("invalid", "2^53", same, 2**60)
    refused("invalid", "not a string", same, {1: 2})
    refused("invalid", "cannot be passed", same, object())
    refused("invalid", "nothing", lambda: script["nothing"])
    reads = "return { f = function() return io.open('/dev/null') ~= nil end }"
    refused("denied", "needs the grant read", lambda: runtime.script(reads, rules="open").f())
    refused("invalid", "there is no grant 'raed'", lambda: runtime.script(reads, grants={"raed": True}))
    check("what is granted", runtime.script(reads, rules="open", grants={"read": ["/dev"]}).f() is True)
    traces = ("-- rille: jit\nlocal n = 0\n"
              "require('jit').attach(function(what) if what == 'stop' then n = n + 1 end end, 'trace')\n"
              "return { f = function() for i = 1, 1e5 do end return n > 0 end }")
    for allowed in (False, True):
        script = runtime.script(traces, rules="open", grants={"all": True}, jit=allowed)
        check(f"machine code with jit={allowed}", script.f() is allowed)


def arrays(runtime):
    script = runtime.script("""return { same = function(t) return t end, twice = function(t) return t * 2 end,
        inplace = function(t) return t:add_(1) end, size = function(b) return #b, b:text(1, 3) end }""")
    array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    back = script.same(array)
    check("array -> script -> array has the same address", numpy.asarray(back).ctypes.data == array.ctypes.data and
          numpy.from_dlpack(back).ctypes.data == array.ctypes.data)
    twice = script.twice(array)
    check("shape, dtype and values", twice.shape == (2, 3) and twice.dtype == "f32" and
          (twice.numpy() == array * 2).all())
    script.inplace(array).numpy()
    check("a change in place is seen", array[0, 0] == 1)
    kept = numpy.from_dlpack(script.twice(array))
    gc.collect()
    check("an array keeps a script's tensor", kept[1, 2] == 12)
    for dtype in ("float64", "float16", "int64", "int32", "uint8"):
        one = numpy.ones(4, dtype=dtype)
        check(f"{dtype} is shared", script.same(one).numpy().dtype == one.dtype)
    try:
        script.same(array.T)
        check("an array that is not contiguous is refused", False)
    except BufferError as e:
        check("an array that is not contiguous is refused", "ascontiguousarray" in str(e))
    data = bytearray(b"abcdef")
    check("bytes are shared", script["size"](runtime.buffer(data), results=2) == (6, "abc"))


async def coroutines():
    async with rille.Runtime() as runtime:
        async def double(x):
            await asyncio.sleep(0)
            if x < 0:
                raise ValueError("below zero")
            return x * 2
        runtime.module("app", double=double, effect="volatile")
        f = runtime.script("local app = require 'app' return { f = function(x) return app.double(x) end }").f
        got = await asyncio.gather(*(f.begin(i) for i in range(10000)))
        check("10,000 calls side by side", got == [2 * i for i in range(10000)])
        try:
            await f.begin(-1)
            check("a coroutine's exception", False)
        except rille.Error as e:
            check("a coroutine's exception", "ValueError: below zero" in e.message, e.message)
        runs = [runtime.run(f"require('rille').sleep('10ms') return {i}") for i in range(5)]
        check("runs side by side", await asyncio.gather(*runs) == [0, 1, 2, 3, 4])
        run = runtime.run("require('rille').sleep('1h')")
        try:
            await asyncio.wait_for(run, 0.05)
        except asyncio.TimeoutError:
            pass
        end = time.monotonic() + 20  # the loop's own timer is a minute away
        while run.active and time.monotonic() < end:
            await asyncio.sleep(0)
        check("a cancelled task cancels its run at once", run.state == "cancelled", run.state)
        sleeps = runtime.run("require('rille').sleep('1h')")
        await asyncio.sleep(0.05)  # the loop sets its timer
        check("a coroutine's result does not wait for a timer", await asyncio.wait_for(f.begin(1), 20) == 2)
        sleeps.cancel()


def interrupted(runtime):
    for name, code in (("waits", "require('rille').sleep('1h')"), ("computes", "while true do end")):
        run = runtime.run(f"print 'begun' {code}", print=lambda _: threading.Timer(
            0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start())
        try:
            run.result()
            check(f"KeyboardInterrupt ends a run that {name}", False)
        except KeyboardInterrupt:
            check(f"KeyboardInterrupt ends a run that {name}", run.state == "cancelled", run.state)


for part in (runs, values, arrays):
    with rille.Runtime() as made:
        part(made)
asyncio.run(coroutines())
with rille.Runtime() as made:
    interrupted(made)
with rille.Runtime() as made:
    for _ in range(50):
        made.run("print(1)", rules="open", print=len).result()
    gc.collect()
    check("ended runs are not kept", not made._active and len(made._kept) == 0, made._kept)
for _ in range(100):
    rille.Runtime().close()
refused("state", "closed", made.run, "return 1")
print(f"1..{count}")
