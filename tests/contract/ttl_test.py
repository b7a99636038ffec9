#!/usr/bin/env python3
"""The end of a lease's ttl while its run goes on, on clouds that end no machine by themselves: its runner ends it, the
script hears why, and a run that is resumed after that end does the same. At the prompt, too.

usage: ttl_test.py RILLE PROVIDER
"""
import os, subprocess, sys, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from tap import check, finish
from user import User

rille, provider = sys.argv[1:3]
user = User(rille, provider, "--start", "0.02")
# The end of a test that fails; nothing here waits for so long.
GOES_ON = 'for _ = 1, 600 do if box.state == "live" or box.state == "releasing" then rille.sleep("100ms") end end\n'


def rent(ttl, more=""):
    return (f'local box = rille.rent("box", {{ provider = "{provider}", gpu = "A100", ttl = "{ttl}", min_ttl = "1s", '
            f'unguarded = true{more} }})\n')


def alive():
    return [m["id"] for m in user.ask("state")["machines"] if m["state"] not in ("gone", "ending")]


try:
    status, out, err = user.run(rent("4s") + GOES_ON + """
print("by then", box.state, rille.now() >= box.expires)
local ok, e = pcall(box.call, box, "late", function() return 1 end)
print(ok, e.kind, e.code, e.message, e.hint)
rille.scope("more", function()
  local second = rille.rent("second", { provider = "%s", gpu = "A100", ttl = "1h", unguarded = true })
  print("goes on", second.state)
end)""" % provider)
    check("a machine ends with its ttl, though its run goes on", "by then\treleased\ttrue" in out, (out, err))
    check("a later use gets the reason, and how to ask for more",
          "false\tstate\tttl_over\tthe ttl of 'box' has passed (20" in out and
          "its machine had not come up within 4" in out, out)
    check("the run goes on", status == 0 and "goes on\tlive" in out and not alive(), (status, out, err, alive()))
    check("its user gets a message", "the ttl of 'box' has passed" in err, err)
    events = user.rille("audit", "--json")[1]
    check("the trail says so", '"expired"' in events and '"ttl"' in events, events[-2000:])

    if provider == "runpod":                 # billed by the second
        status, out, err = user.run("rille.budget { limit = 0.002 }\n" + rent("10h") + GOES_ON + """
print("by then", box.state)
local ok, e = pcall(box.call, box, "late", function() return 1 end)
print(e.message, e.hint)""")
        check("so does one whose budget had money for less", "by then\treleased" in out and
              "a budget had money for" in out, (status, out, err))

    # Its runner is killed, and no process runs at the end of the ttl; the process that resumes the run ends it.
    Path(user.root, "flow.lua").write_text('local rille = require "rille"\n' + rent("4s") + 'print("ready")\n' +
                                           GOES_ON + 'print("by then", box.state)\n')
    p = subprocess.Popen([os.path.abspath(rille), "run", user.root + "/flow.lua"], env=user.env(), cwd=user.root,
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    while p.stdout.readline() not in ("ready\n", ""):
        pass
    p.kill()
    p.wait()
    check("it is not ended while no process is there", len(alive()) == 1, alive())
    status, out, err = user.rille("resume", "last")
    check("a resumed run ends what is over", status == 0 and "by then\treleased" in out and not alive(),
          (status, out, err, alive()))

    if provider in ("lambda", "runpod", "vast"):  # one key, in the environment
        p = subprocess.Popen([os.path.abspath(rille), "run", user.root + "/flow.lua"], env=user.env(), cwd=user.root,
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while p.stdout.readline() not in ("ready\n", ""):
            pass
        p.kill()
        p.wait()
        end = time.time() + 4                # not before its ttl is over
        while time.time() < end:
            time.sleep(0.1)
        bare = user.env(**{name: None for name in user.told["env"]})
        status, out, err = user.rille("watch", "--once", "--no-resume", env=bare)
        check("a watch without keys says so, and exits as gc does", status == 3 and len(alive()) == 1 and
              f"what is rented from {provider} (1 open) cannot be released by this watch" in out, (status, out, err))
        status, out, err = user.rille("watch", "--once", "--no-resume")
        check("with them it releases what is over", status == 0 and not alive(), (status, out, err, alive()))

    status, out, err = user.rille("-e", rent("3s").replace("local ", "") + GOES_ON + "print('by then', box.state)")
    check("at the prompt, too", "by then\treleased" in out and not alive(), (status, out, err))
    check("nothing secret was shown or written", not user.leaks(), user.leaks())
finally:
    user.close()
finish()
