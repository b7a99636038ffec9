#!/usr/bin/env python3
"""A machine that was rented with a GPU but shows none: its first call is an error, and the machine is released, unless
the rent says that it does not mind; a setup comes before the look. The machine is a folder here (stubs/ssh), with a
real agent in it. usage: gpu_check_test.py RILLE PROVIDER"""
import json, os, sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from tap import check, finish
from user import User

if any(name.startswith("nvidia") or name in ("kfd", "dxg") for name in os.listdir("/dev")):
    print("skipped: this machine has a GPU")
    sys.exit(77)
user = User(sys.argv[1], sys.argv[2], "--start", "0.02")
user.ask("set", end=0.01)
env = user.env(STUB_MACHINES=user.root + "/machines", PATH=f"{here}/stubs:{os.environ['PATH']}", RILLE_THREADS="1")
ORDER = f'provider = "{sys.argv[2]}", gpu = "A100", ttl = "2h", unguarded = true'
RENT = f'local box = rille.rent("box", {{ {ORDER}%s }})\n'
ADD = 'box:call("sum", { args = 20%s }, function(n) return n + 22 end)\n'


def run(lua):
    code, out, err = user.run(lua, env=env)
    return code, out + err


try:
    code, told = run(RENT % "" + "print('set up', " + (ADD % ", setup = true").strip() + ")\n" + "return " + ADD % "")
    check("a setup runs first", "set up\t42" in told or "set up 42" in told, told)
    check("then it is an error that names the machine and what it shows",
          code != 0 and "was rented as " in told and "A100 but shows none; it is released" in told, told)
    check("with the way out", "gpu_check = false" in told and '"image"' in told, told)
    code, told = run(RENT % "" + """
local ok, err = pcall(function()
  """ + ADD % "" + """
end)
assert(not ok and err.kind == "device" and err.code == "gpus_missing", tostring(err))
print("it is " .. box.state)
""")
    check("the machine has ended before the script goes on", code == 0 and "it is released" in told, told)
    code, told = run(RENT % ", gpu_check = false" + "print('sum', " + (ADD % "").strip() + ")\n")
    check("gpu_check = false takes it", code == 0 and "42" in told, told)
    check("with a warning", "but shows none" in told, told)
    code, told = run(RENT % ', gpu_check = "no"')
    check("it is true or false", code != 0 and "gpu_check" in told and "expected true or false" in told, told)
    state = user.ask("state")
    check("three were rented, and nothing is left", len(state["machines"]) == 3 and not state["alive"],
          state["machines"])
finally:
    user.close()
finish()
