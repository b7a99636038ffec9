#!/usr/bin/env python3
"""The foundation's hot paths beside their peers, as ratios measured in one run (interleaved, medians).

usage: foundation.py BUILD_DIR [--rounds 5] [--json FILE]
  start-up of `rille -e ""` beside `luajit -e ""`; a durable step beside one FULL commit of SQLite, and 64 fibers that
  share commits beside SQLite with 64 rows to a commit; fiber switches and calls of C functions beside plain LuaJIT.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time

STEPS = """local rille = require "rille"
local args = rille.args { steps = 0, fibers = 1 }
if args.fibers == 1 then
  for i = 1, args.steps do rille.step("s", function() return i end) end
else
  local list = {}
  for i = 1, args.fibers do list[i] = i end
  rille.map("m", list, function(k)
    for i = 1, args.steps / args.fibers do rille.step("s", function() return i end) end
  end)
end
"""
SWITCH_RILLE = """local rille = require "rille"
local n = ...
local co = coroutine.wrap(function() while true do coroutine.yield() end end)
local t = os.clock()
for i = 1, 2000000 do co() end
print((os.clock() - t) / 2000000 * 1e9)
"""
FIBER_RILLE = """local rille = require "rille"
local list = {}
for i = 1, 20000 do list[i] = i end
local t = os.clock()
rille.map("m", list, function(i) return i end)
print((os.clock() - t) / 20000 * 1e9)
"""
FIBER_LUA = """local t = os.clock()
for i = 1, 20000 do local co = coroutine.create(function(i) return i end); coroutine.resume(co, i) end
print((os.clock() - t) / 20000 * 1e9)
"""
SWITCH_LUA = SWITCH_RILLE.replace('local rille = require "rille"\n', "jit.off(true, true)\n")
CALL = """%s
local f = %s
local t = os.clock()
for i = 1, 3000000 do f("a") end
print((os.clock() - t) / 3000000 * 1e9)
"""


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--json")
    o = p.parse_args()
    rille, raw = os.path.abspath(o.build + "/rille"), os.path.abspath(o.build + "/tests/raw_commits")
    home = tempfile.mkdtemp(prefix="rille-bench-")
    env = dict(os.environ, RILLE_HOME=home + "/home", XDG_CONFIG_HOME=home)
    script = home + "/steps.lua"
    open(script, "w").write(STEPS)

    def timed(*words):
        t = time.perf_counter()
        subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.perf_counter() - t

    def printed(*words):
        return float(subprocess.run(words, env=env, check=True, capture_output=True, text=True).stdout.split()[-1])

    def steps_us(count, fibers):
        shutil.rmtree(home + "/home", ignore_errors=True)
        empty = timed(rille, "run", script, "--steps", "0", "--fibers", str(fibers))
        return (timed(rille, "run", script, "--steps", str(count), "--fibers", str(fibers)) - empty) / count * 1e6

    def raw_us(count, per):
        path = home + "/raw.db"
        for end in ("", "-wal", "-shm"):
            if os.path.exists(path + end):
                os.remove(path + end)
        return printed(raw, path, str(count), str(per)) / 1000

    samples = {}
    add = lambda key, value: samples.setdefault(key, []).append(value)
    for _ in range(o.rounds):
        for _ in range(5):
            add("start_rille_ms", timed(rille, "-e", "") * 1000)
            add("start_luajit_ms", timed("luajit", "-e", "") * 1000)
        for _ in range(3):  # alternating, since the disk's mood changes
            add("commit_us", raw_us(2000, 1))
            add("step_us", steps_us(2000, 1))
            add("commit64_us", raw_us(12800, 64))
            add("step64_us", steps_us(12800, 64))
        add("fiber_rille_ns", printed(rille, "-e", FIBER_RILLE))
        add("fiber_luajit_ns", printed("luajit", "-e", FIBER_LUA))
        for name, code in (("switch_rille_ns", SWITCH_RILLE), ("call_rille_ns", CALL % ("", "string.byte"))):
            add(name, printed(rille, "-e", code))
        for name, code in (("switch_luajit_ns", SWITCH_LUA),
                           ("call_luajit_ns", CALL % ("jit.off(true, true)", "string.byte"))):
            add(name, printed("luajit", "-e", code))
    m = {k: statistics.median(v) for k, v in samples.items()}
    rows = [
        ("start-up, ms more than luajit", m["start_rille_ms"], m["start_luajit_ms"],
         m["start_rille_ms"] - m["start_luajit_ms"], "<= 10 ms"),
        ("durable step / FULL commit, us", m["step_us"], m["commit_us"], m["step_us"] / m["commit_us"], "<= 1.6"),
        ("step of 64 fibers / row of a 64-row commit, us", m["step64_us"], m["commit64_us"],
         m["step64_us"] / m["commit64_us"], "<= 1.1"),
        ("fiber, spawn to join / coroutine, ns", m["fiber_rille_ns"], m["fiber_luajit_ns"],
         m["fiber_rille_ns"] / m["fiber_luajit_ns"], ""),
        ("script coroutine switch, both interpreted, ns", m["switch_rille_ns"], m["switch_luajit_ns"],
         m["switch_rille_ns"] / m["switch_luajit_ns"], ""),
        ("C function call, both interpreted, ns", m["call_rille_ns"], m["call_luajit_ns"],
         m["call_rille_ns"] / m["call_luajit_ns"], ""),
    ]
    print(f"{'':46}{'rille':>10}{'peer':>10}{'ratio':>8}  goal")
    for name, a, b, ratio, goal in rows:
        print(f"{name:46}{a:10.2f}{b:10.2f}{ratio:8.2f}  {goal}")
    if o.json:
        json.dump({"medians": m, "rounds": o.rounds}, open(o.json, "w"), indent=1)
    shutil.rmtree(home, ignore_errors=True)


main()
