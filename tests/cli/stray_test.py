#!/usr/bin/env python3
"""A program that leaves a process with neither environment nor session of its call: release ends it, also after the
agent, or the agent and its keeper, were killed. usage: stray_test.py RILLE"""
import glob, json, os, shutil, signal, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-stray-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def start_time(pid):
    """Of a living process; None when it is gone."""
    try:
        fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


# The script waits at a prompt of ours (a file), so that the test can kill what it likes in between.
script = f"{root}/stray.lua"
open(script, "w").write(f"""
local rille = require "rille"
local box = rille.rent("box", {{ provider = "local" }})
box:exec("stray", {{ argv = {{ "sh", "-c",
  [[env -i setsid sh -c 'echo $$ >{root}/part; mv {root}/part {root}/pid; exec sleep 600' >/dev/null 2>&1 &
    while [ ! -e {root}/pid ]; do sleep 0.01; done]] }} }})
print("left")
rille.step("hold", function() while not io.open("{root}/go") do os.execute("sleep 0.02") end end)
""")


def case(name, kill):
    for f in ("pid", "go"):
        if os.path.exists(f"{root}/{f}"):
            os.remove(f"{root}/{f}")
    run = subprocess.Popen([rille, "run", script, "--new"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, cwd=root)
    said = ""
    for line in run.stdout:
        said += line
        if "left" in line:
            break
    pid = int(open(f"{root}/pid").read()) if os.path.exists(f"{root}/pid") else 0
    began = start_time(pid) if pid else None
    check(f"{name}: it runs", began is not None, said)
    [home] = glob.glob(f"{root}/home/**/agent.lock", recursive=True) or [None]
    agent = json.loads(open(home).read())["pid"]
    tree = os.path.join(os.path.dirname(home), "agent.tree")

    def listed():
        return [int(line.split()[0]) for line in open(tree).read().splitlines()[1:]]
    keeper = listed()[0]
    if "keeper" in kill:  # it writes its list every second; the case is what it knew
        while pid not in listed():
            subprocess.run(["sleep", "0.05"])
        os.kill(keeper, signal.SIGSTOP)
    if "agent" in kill:
        os.kill(agent, signal.SIGKILL)
    if "keeper" in kill:
        os.kill(keeper, signal.SIGKILL)
    open(f"{root}/go", "w").close()
    said += run.communicate(timeout=120)[0]
    check(f"{name}: the run ends well", run.returncode == 0, said)
    left = began is not None and start_time(pid) == began
    check(f"{name}: nothing is left", not left, pid)
    if left:
        os.kill(pid, signal.SIGKILL)


case("nothing is killed", ())
case("the agent is killed", ("agent",))
case("agent and keeper are killed", ("agent", "keeper"))
shutil.rmtree(root, ignore_errors=True)
finish()
