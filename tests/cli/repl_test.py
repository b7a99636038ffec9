#!/usr/bin/env python3
"""The prompt, driven through a pseudo-terminal as a person would. usage: repl_test.py RILLE"""
import os, pty, re, select, shutil, signal, subprocess, sys, tempfile, termios, time

from tap import check, finish

rille = os.path.abspath(sys.argv[1])


class Prompt:
    def __init__(self, home, *words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(RILLE_HOME=home, XDG_CONFIG_HOME=home + "/config", TERM="xterm", NO_COLOR="1")
            os.execv(rille, [rille, *words])
        self.seen = "\n"
        self.banner = self.prompt()

    def wait(self, text, seconds=30):
        """Reads until `text` has appeared; gives what came before it."""
        return self.wait_for(re.escape(text), seconds)

    def prompt(self, seconds=30):
        """Reads until there is a new prompt; gives what came before it. The editor draws the line again at each key."""
        return self.wait_for(r"\n\d+ rille> ", seconds)

    def wait_for(self, pattern, seconds=30):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            left = end - time.monotonic()
            ready, _, _ = select.select([self.fd], [], [], max(0, left))
            if not ready:
                raise AssertionError(f"waited for {pattern!r}, saw {self.seen[-600:]!r}")
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"ended before {pattern!r}, saw {self.seen[-600:]!r}")
            self.seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data.decode(errors="replace")).replace("\r", "")
        found = re.search(pattern, self.seen)
        before, self.seen = self.seen[:found.start()], self.seen[found.end():]
        return before

    def key(self, bytes_):
        os.write(self.fd, bytes_)

    def end_of_input(self):
        """Ctrl-D, once the line editor listens: before, the terminal takes it for the end of an empty line."""
        while termios.tcgetattr(self.fd)[3] & termios.ICANON:
            time.sleep(0.01)
        self.key(b"\x04")

    def interrupt(self):
        """Ctrl-C for what was entered, not for the line editor, which takes it as a key until it has let go."""
        while not termios.tcgetattr(self.fd)[3] & termios.ISIG:
            time.sleep(0.01)
        time.sleep(0.3)  # and what was entered has begun
        self.key(b"\x03")

    def enter(self, line, prompt=None):
        self.key(line.encode() + b"\n")
        if prompt:
            return self.wait(prompt)
        return self.prompt().partition("\n")[2]  # without the echo

    def end(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def leases(home):
    env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=home + "/config")
    return subprocess.run([rille, "leases"], env=env, capture_output=True, text=True).stdout


home = tempfile.mkdtemp(prefix="rille-repl-")
try:
    p = Prompt(home)
    p.enter("local x = rille.device():randn{2,3}")
    out = p.enter("x")
    check("a local survives its entry, and a tensor shows its values", "f32[2, 3]" in out and out.count("[") >= 3, out)
    odd = p.enter('rille.device("cpu"):tensor { 0 / 0, -(0 / 0) }')
    check("a NaN is shown without the sign that it happens to have", "[nan, nan]" in odd, odd)
    check("methods of a tensor", "f32[2, 2]" in p.enter("x:matmul(x:transpose())"))
    check("an expression is shown", p.enter("1 + 1").strip().endswith("2"))
    check("the last value is _", p.enter("_ * 21").strip().endswith("42"))
    out = p.enter('{ name = "a", list = { 1, 2, 3 } }')
    check("a table is shown as one would write it", '{ list = { 1, 2, 3 }, name = "a" }' in out, out)
    p.enter('box = rille.rent("b", { gpu = "any" })')
    p.enter("local n = 3")
    p.enter("print(n)")
    check("a box rented earlier is used three entries later",
          "9" in p.enter('box:call("sq", { args = n }, function(a) return a * a end)'))
    check("rille is there, too", "cpu" in p.enter('box:call("where", function() return rille.device("cpu").name end)'))
    check("an unfinished line goes on", p.enter("function f(a)", ".. ") is not None)
    p.enter("  return a * 2", ".. ")
    p.enter("end")
    check("and is whole after its end", p.enter("f(21)").strip().endswith("42"))
    p.enter("function g()", ".. ")
    p.enter("", ".. ")
    p.enter("  return 7", ".. ")
    p.enter("end")
    check("an empty line may stand in it", p.enter("g()").strip().endswith("7"))
    p.enter("g(", ".. ")
    p.enter("", ".. ")
    check("two give it up", "'<eof>'" in p.enter(""))
    out = p.enter("1, nil, 3")
    check("values after a nil", [w for w in out.split() if w in ("1", "nil", "3")][-3:] == ["1", "nil", "3"], out)
    p.key(b"while true do end\n")
    time.sleep(0.3)
    p.key(b"\x03")
    out = p.prompt()
    check("Ctrl-C ends an endless loop and gives the prompt back", "cancelled" in out, out)
    p.key(b'while true do pcall(function() while true do end end) end\n')
    time.sleep(0.3)
    p.key(b"\x03")
    out = p.prompt()
    check("also one that swallows errors", "cancelled" in out, out)
    p.key(b'rille.sleep("1h")\n')
    time.sleep(0.3)
    p.key(b"\x03")
    check("Ctrl-C ends a sleep", "cancelled" in p.prompt())
    check("the session goes on after it", p.enter("n").strip().endswith("3"))
    # Ten thousand products would take minutes of any machine.
    p.key(b'd = rille.device("cpu") y = d:randn{ 1500, 1500 } '
          b'for i = 1, 10000 do y = y:matmul(y) * 1e-3 end y:sum():item()\n')
    time.sleep(0.3)
    p.key(b"\x03")
    out = p.prompt()
    check("Ctrl-C ends an entry that waits for tensors", "interrupted by Ctrl-C" in out, out)
    check("their computation has ended, too", p.enter("(d:ones{ 2 } * 2):sum():item()").strip().endswith("4"))
    out = p.enter("y:sum():item()")
    check("a tensor that was not computed says so", "not computed: interrupted by Ctrl-C" in out, out)
    out = p.enter("eror('x')")
    check("an error and what was meant", "did you mean 'error'" in out, out)
    for typed, whole in (("rille.re", "rille.rent"), ("rille.op", "rille.optim"), ("table.conc", "table.concat"),
                         ("x:matm", "x:matmul"), ("box:st", "box:stage"), ("rille.optim.ada", "adamw")):
        p.key(typed.encode() + b"\t\t")
        out = p.wait(whole, 10)
        p.key(b"\x03")
        p.prompt()
        check(f"Tab completes {typed}", True)
    out = p.enter("rille.offers()")
    check("offers are shown as a list, not as its table", "provider" in out.lower() and "price_per_hour =" not in out,
          out)
    out = p.enter("?box")
    check("?box tells about the object in a variable", "Instance" in out and "Instance:stage" in out, out)
    check("?box:call about a method", "Instance:call(name" in p.enter("?box:call"))
    check("?box.exec too, and ?x", "Instance:exec(name" in p.enter("?box.exec") and "Tensor:matmul" in p.enter("?x"))
    out = p.enter("?box:stge")
    check("a method that is not there: the nearest one", "did you mean 'Instance:stage'" in out, out)
    check("a word, too", "did you mean 'rent'" in p.enter("?rnet"))
    check("the name of nothing", "nothing is called 'qqqqqq'; help()" in p.enter("?qqqqqq"))
    for line in ("rille.rent = nil", "rille.optim.adamw = 1", "rille.train.run = nil"):
        out = p.enter(line)
        check(f"{line} is refused", "cannot be changed: '" in out, out)
    out = p.enter("rille.optim.sgdd(1)")
    check("a misspelt name in a module", "rille.optim.sgdd does not exist" in out and "did you mean 'sgd'" in out, out)
    p.key(b"half a line")
    p.wait("half a line")
    p.key(b"\x03")
    p.prompt()
    check("Ctrl-C at the prompt drops the line", p.enter("2 + 3").strip().endswith("5"))
    p.key(b"\x1b[A")
    p.wait("2 + 3")
    p.key(b"\n")
    check("history", "5" in p.prompt())
    p.enter('handle = rille.spawn("later", function() rille.sleep("50ms"); print("from the background") end)')
    check("a fiber goes on while the prompt waits", p.wait("from the background") is not None)
    p.end_of_input()
    p.wait("[y/N] ")
    p.key(b"n\n")
    p.prompt()
    check("Ctrl-D with a live lease asks, and no means no", "live" in leases(home))
    p.end_of_input()
    p.wait("[y/N] ")
    p.key(b"y\n")
    check("yes ends the session well", p.end() == 0)
    check("and releases the box", "nothing is rented" in leases(home), leases(home))
    p = Prompt(home)
    p.key(b"\x1b[A\x1b[A")
    check("history outlives the session", p.wait("2 + 3") is not None)
    p.key(b"\x03")
    p.prompt()
    p.enter('rille.rent("kept", { gpu = "any" })')
    os.kill(p.pid, signal.SIGHUP)
    p.end()
    out = leases(home)
    check("a closed terminal loses no lease: it is listed, and can be released", "kept" in out, out)
    p = Prompt(home, "resume", "last")
    check("a resumed session says what it still rents", 'box = rille.rent("kept")' in p.banner, p.banner)
    os.kill(p.pid, signal.SIGHUP)
    p.end()
    env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=home + "/config")
    code = subprocess.run([rille, "release", "kept"], env=env, capture_output=True).returncode
    check("release by name", code == 0 and "nothing is rented" in leases(home))

    p = Prompt(home)
    p.enter('box = rille.rent("b", { gpu = "cpu" })')
    p.key(b'("a"):rep(60):find(("a*"):rep(60) .. "b")\n')
    p.interrupt()
    out = p.prompt()
    check("Ctrl-C ends a pattern that tries very many ways", "interrupted by Ctrl-C" in out, out)
    p.key(b'load("-- rille: jit\\nlocal n = 0 while true do n = n + 1 end")()\n')
    p.interrupt()
    p.wait("Ctrl-C again to stop at once")
    p.key(b"\x03")
    out = p.wait("ends it")
    check("a call that nothing can interrupt: the second Ctrl-C ends the process, and says how to go on",
          "rille resume 2" in out and "rille release 2" in out and p.end() == 130, out)
    check("the box is still there", "live" in leases(home), leases(home))
    p = Prompt(home, "resume", "last")
    p.enter('box = rille.rent("b")')
    p.key(b'rille.scope("s", function() rille.defer(function() rille.sleep("1h") end) error("x") end)\n')
    p.interrupt()
    time.sleep(0.3)  # two at once would be one
    p.key(b"\x03")
    p.wait("Ctrl-C again to leave the session")
    p.key(b"\x03")
    out = p.wait("rille resume")
    check("cleanup that hangs: the third leaves the session", "what the session has rented stays" in out and
          p.end() == 130 and "live" in leases(home), out)
    p = Prompt(home, "resume", "last")
    p.enter('dev = rille.device("cpu")')
    p.enter("spin = dev:kernel([[extern \"C\" __global__ void spin(float* x) "
            "{ volatile float* p = x; while (p[0] == 0.0f) {} }]])")
    p.enter("x = dev:zeros { 1 }")
    p.enter("spin:launch({ grid = 1, block = 1 }, x)")
    p.key(b"x:item()\n")
    p.interrupt()
    check("an endless kernel: the entry ends", "cancelled" in p.prompt())
    p.end_of_input()
    p.wait("[y/N] ")
    p.key(b"y\n")
    check("and the session, too", p.end() == 0 and "nothing is rented" in leases(home), leases(home))
finally:
    shutil.rmtree(home, ignore_errors=True)
finish()
