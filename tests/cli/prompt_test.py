#!/usr/bin/env python3
"""What a newcomer types at the prompt who comes from IPython or Julia. usage: prompt_test.py RILLE"""
import fcntl, os, shutil, signal, struct, sys, tempfile, termios, time

from prompt import Prompt
from tap import check, finish

rille = os.path.abspath(sys.argv[1])
home = tempfile.mkdtemp(prefix="rille-prompt-")
work = home + "/work"
os.mkdir(work)
UP = b"\x1b[A"


def shown_after(p, keys, text, seconds=10):
    """Whether the text is shown after the keys; then drops the entry."""
    p.key(keys)
    try:
        p.wait(text, seconds)
        found = True
    except AssertionError:
        found = False
    p.key(b"\x03")
    p.prompt()
    return found


try:
    open(work + "/mine.lua", "w").write("return { v = 1 }\n")
    open(work + "/train.lua", "w").write("local rate = 3\nfunction double(x) return x * 2 end\n")
    p = Prompt(rille, home, directory=work)

    p.key(b"for i = 1, 2 do -- a comment\nprint([[x\ny]])\nend\n")
    check("an entry of several lines runs", p.prompt().count("x\ny") >= 2)
    p.key(UP + b"\n")
    out = p.prompt()
    check("it comes back with its lines, comments and long strings", out.count("x\ny") >= 2 and "error" not in out, out)
    p.key(b"\x1b[200~function paste()\n\tlocal a = 1\n\n\n\treturn a\nend\x1b[201~\n")
    p.prompt()
    check("what is pasted is one entry, with blank lines and tabs", p.enter("paste()").strip().endswith("1"))
    check("a tab in front of code is an indent", not shown_after(p, b"\tx", "assert", 1))

    p.enter("d = rille.device('cpu')")
    for keys, text in ((b'rille.rent("a", { g\t', "gpu_memory"), (b"rille.device():ra\t", "randn"),
                       (b"?rille.ten\t", "?rille.ten"), (b"d:ra\t", "randperm"), (b'io.open("trai\t', '"train.lua'),
                       (b'require "rille.op\t', '"rille.optim'), (b":rel\t", ":reload"),
                       (b"?string.forma\t", "?string.format"),
                       (b"rille.rent(", "rille.rent(name"), (b'rille.rent("a", {', "RentOptions: "),
                       (b"loc\t", "local"), (b":load tr\t", ":load train.lua")):
        check(f"{keys!r} shows {text!r}", shown_after(p, keys, text))

    p.enter('mine = require "mine"')
    open(work + "/mine.lua", "w").write("return { v = 2 }\n")
    out = p.enter(":reload mine")
    check(":reload reads a module again, also for the variable", "also in mine" in out and
          p.enter("mine.v").strip().endswith("2"), out)
    open(work + "/mine.lua", "w").write("return {\n")
    check("a module that does not compile leaves the old one", "error" in p.enter(":reload mine") and
          p.enter("require('mine').v").strip().endswith("2"))
    check(":reload of what is not loaded", "is not loaded" in p.enter(":reload other"))

    out = p.enter("help()")
    check("help lists modules, too", all(f"rille.{name} " in out for name in ("train", "nn", "optim", "data")), out)
    check("what is meant begins alike", "did you mean 'rille.train'" in p.enter("?rille.trian"))
    check("a value that is no function", "rille.home is a string" in p.enter("?rille.home"))
    check("Lua's own functions", "s:format(" in p.enter("?string.format") and "pcall(f" in p.enter("?pcall"))
    check("??name shows the source", "function nn.mlp" in p.enter("??rille.nn.mlp"))
    p.enter("function mine_too(a)\n  return a + 41\nend")
    check("of the user's functions, too", "return a + 41" in p.enter("??mine_too"))
    check("apropos", "rille.checkpoint" in p.enter(":apropos checkpoint"))
    check(":help", ":bench CODE" in p.enter(":help"))
    check("a command that is not there", "there is no command ':hlep'; did you mean 'help'" in p.enter(":hlep"))
    out = p.enter("!echo from $((1 + 1)) shells; exit 3")
    check("a command of the shell", "from 2 shells" in out and "exit code 3" in out, out)
    out = p.enter(":time d:ones{2}:sum()")
    check(":time tells how long it took, and the value", "2 " in out and ("us" in out or "ms" in out), out)
    check(":bench tells the spread", "median" in p.enter(":bench 1 + 1"))
    out = p.enter("local t0 = os.clock(); local z = 4; os.clock() - t0 < 5, z")
    check("an expression behind statements is shown", out.split()[-2:] == ["true", "4"], out)
    check("and its local variables stay", p.enter("z").strip().endswith("4"))
    p.enter("_9 = nil")
    number = p.number
    p.enter("6 * 7")
    check("an entry's value by its number", p.enter(f"_{number} + 1").strip().endswith("43"))
    p.enter('error("boom")')
    check("the last error has fields", f'"entry {p.number - 1}:1: boom"' in p.enter("_err.message"))
    check("an error names the entry", "entry " in p.enter("nil + 1"))
    out = p.enter(":load train.lua")
    check(":load runs a file, and keeps its variables", p.enter("double(rate)").strip().endswith("6"), out)
    check(":load of no file", "there is no file 'nope.lua'" in p.enter(":load nope.lua"))
    out = p.enter(":who")
    check(":who", "rate " in out and "number 3" in out and "mine_too" in out and "print" not in out, out)
    check(":history", "double(rate)" in p.enter(":history double"))
    check(":runs is `rille ps`", "repl" in p.enter(":runs"))
    out = p.enter("rille.nn.mlp { 4, 3, 2 }")
    check("a model shows its layers", "Mlp: 23 parameters" in out and "Linear: 15 parameters" in out and
          "[3, 4]" in out, out)
    check("?m of a model", "Mlp" in p.enter("m = rille.nn.mlp { 4, 3, 2 }") + p.enter("?m"))
    out = p.enter("rille.plot({ 3, 2, 1.5, 1.2 }, { title = 'loss', height = 4 })")
    check("a plot", "loss" in out and any(0x2800 < ord(c) < 0x2900 for c in out), out)

    p.enter('spin = d:kernel([[extern "C" __global__ void spin(float* x) '
            "{ volatile float* p = x; while (p[0] == 0.0f) {} }]])")
    p.enter("x = d:zeros { 1 }; spin:launch({ grid = 1, block = 1 }, x)")
    p.key(b"x\n")
    p.interrupt()
    began = time.monotonic()
    out = p.prompt()
    check("Ctrl-C ends an entry that shows a tensor which is not computed", "cancelled" in out and
          time.monotonic() - began < 2, out)
    p.key(b":suspend\n")
    out = p.wait("rille resume")
    check(":suspend leaves, waits for no tensor without end, and says how to come back", "suspended" in out and
          "not kept: x: cancelled" in out and "not kept: m" not in out and p.end() == 0, out)

    open(work + "/pager", "w").write('#!/bin/sh\necho "paged $(wc -l <"$1") lines, the last $(tail -n 1 "$1")"\n')
    os.chmod(work + "/pager", 0o755)
    p = Prompt(rille, home, directory=work, env=dict(PAGER=work + "/pager"))
    fcntl.ioctl(p.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 80, 0, 0))
    out = p.enter("long = {} for i = 1, 60 do long[i] = ('word'):rep(4) .. i end; long")
    check("what does not fit on the screen is cut", "more lines: :more shows them" in out and
          out.count("\n") < 20 and '18"' not in out, out)
    out = p.enter(":more")
    check(":more shows the whole value", "paged 62 lines, the last }" in out, out)
    check("or that of code", "paged 1 lines, the last { 1, 2 }" in p.enter(":more { 1, 2 }"))
    p.key(b":quit\n")
    p.end()

    open(work + "/ed", "w").write('#!/bin/sh\necho "print(\'edited\')" > "$1"\n')
    os.chmod(work + "/ed", 0o755)
    p = Prompt(rille, home, directory=work, env=dict(VISUAL=work + "/ed"))
    p.enter("1")
    p.key(b":edit\n")
    p.wait("rille> print('edited')")
    p.key(b"\n")
    check(":edit offers what the editor saved", "edited" in p.prompt().partition("\n")[2])
    p.end_of_input()
    check("the session ends well", p.end() == 0)

    p = Prompt(rille, home, directory=work)
    p.enter("d = rille.device('cpu'); local plain = { 1, { name = 'moon' } }; text = 'a'")
    p.enter("function twice(x) return x * 2 end")
    p.enter("net = rille.nn.mlp { 4, 3, 2 }")
    p.enter("t = d:full { 2, 3, value = 7 }; co = coroutine.create(print)")
    p.enter("sum = net:parameters()[1].tensor:sum():item()")
    p.enter("other = rille.rent('box', { gpu = 'cpu' })")
    p.end_of_input()
    p.wait("[y/N] ")
    p.key(b"s\n")
    p.wait("continue with: rille resume")
    check("a session with a box is kept when one says so", p.end() == 0)
    p = Prompt(rille, home, "resume", "last", directory=work)
    check("resume tells which variables are there", "variables: " in p.banner and "net" in p.banner and
          "not kept: co" in p.banner and "still rented: box, at $0.00 per hour; it is in other" in p.banner, p.banner)
    check("the machine is back in its variable", "box" in p.enter("other.name"))
    check("plain values", "moon" in p.enter("plain") and '"a"' in p.enter("text"))
    check("functions", p.enter("twice(21)").strip().endswith("42"))
    check("tensors", "42" in p.enter("t:sum():item()"))
    check("models, with their weights", "true" in p.enter("net:parameters()[1].tensor:sum():item() == sum"))
    p.enter("later = { 5 }; huge = {} for i = 1, 1e6 do huge[i] = 'number ' .. i end")
    os.kill(p.pid, signal.SIGKILL)
    p.end()
    p = Prompt(rille, home, "resume", "last", directory=work)
    check("a crash loses no plain value", p.enter("later[1]").strip().endswith("5"), p.banner)
    check("but a large one, and says so", "not kept: huge: it is large" in p.banner, p.banner)
    p.enter("other:release()")
    p.key(b":quit\n")
    check("and the session ends well", p.end() == 0)

    p = Prompt(rille, home, directory=work, env=dict(TERM="dumb"))
    check("a terminal without a moving cursor reads plain lines", p.enter("1 + 1").strip().endswith("2"))
    p.key(b":quit\n")
    check("and ends", p.end() == 0)
finally:
    shutil.rmtree(home, ignore_errors=True)
finish()
