#!/usr/bin/env python3
"""A program with 200 MB of output, and a terminal that does not read it: neither the program, nor the agent, nor the
channel, nor the runner waits for ever or grows without bound. usage: chatty_test.py RILLE"""
import glob, os, re, shutil, subprocess, sys, tempfile, time

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-chatty-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")
LOG_BYTES_MAX = 64 << 20      # log_bytes_max: an agent keeps so much of a call's output
GROWTH_MB_MAX = 48            # far below the 200 MB, and below the log


def peak_mb(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{pid}/status").read()).group(1)) / 1024


def parts():
    """name -> pid of the runner, the channel's command, the keeper and the agent."""
    found = {"runner": run.pid}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if len(words) > 4 and words[1] == "agent" and words[4].startswith(root):
            found[words[2]] = int(pid)
    return found


def wait_for(what, condition, limit_s=120):
    until = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > until:
            check(what, False, "not within 120 s")
            run.kill()
            sys.exit(1)
        time.sleep(0.02)
    check(what, True)


script = f"{root}/chatty.lua"
open(script, "w").write(f"""
local rille = require "rille"
local box = rille.rent("box", {{ provider = "local" }})
box:exec("small", {{ argv = {{ "echo", "small" }} }})
print("[before]")
rille.step("hold", function() while not io.open("{root}/go1") do os.execute("sleep 0.02") end end)
print("code", box:exec("chatty", {{ argv = {{ "sh", "-c",
  "yes 0123456789012345678901234567890123456789012345678901234567 | head -c 200000000; : >{root}/wrote" }} }}).code)
print("[after]")
rille.step("hold", function() while not io.open("{root}/go2") do os.execute("sleep 0.02") end end)
""")
run = subprocess.Popen([rille, "run", script], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=root)


def read_until(mark):
    """The bytes up to the mark, counted, and the last of them."""
    size, tail = 0, b""
    while mark not in tail:
        block = os.read(run.stdout.fileno(), 1 << 16)
        if not block:
            break
        size += len(block)
        tail = (tail + block)[-(1 << 17):]
    return size, tail


said = read_until(b"[before]")[1]
check("it begins", b"[before]" in said, said)
pids = parts()
check("all parts are there", sorted(pids) == ["connect", "daemon", "keeper", "runner"], pids)
before = {name: peak_mb(pid) for name, pid in pids.items()}
open(f"{root}/go1", "w").close()
wait_for("the program ends though its output is not read", lambda: os.path.exists(f"{root}/wrote"))
wait_for("its result is kept though its output is not read", lambda: any(
    os.path.exists(os.path.dirname(log) + "/result.json")
    for log in glob.glob(f"{root}/home/instances/*/calls/*/log") if os.path.getsize(log) > LOG_BYTES_MAX))
for name, pid in pids.items():
    grown = peak_mb(pid) - before[name]
    check(f"unread, the {name} grows by less than {GROWTH_MB_MAX} MB", grown < GROWTH_MB_MAX, (grown, before[name]))
size, tail = read_until(b"[after]")
check("what is kept arrives, and says that the rest is dropped",
      LOG_BYTES_MAX <= size < LOG_BYTES_MAX + 4096 and b"(log_bytes_max); the rest is dropped]" in tail
      and b"code\t0" in tail, (size, tail[-300:]))
for name, pid in pids.items():
    grown = peak_mb(pid) - before[name]
    check(f"read, the {name} has grown by less than {GROWTH_MB_MAX} MB", grown < GROWTH_MB_MAX, (grown, before[name]))
open(f"{root}/go2", "w").close()
run.stdout.read()
check("the run ends well", run.wait(120) == 0, run.returncode)
shutil.rmtree(root, ignore_errors=True)
finish()
