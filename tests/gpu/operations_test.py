#!/usr/bin/env python3
"""operations.lua with the CPU in both places: every case runs in every type that it says, gradients agree with finite
differences, and what is off is told by name. Every method of tensors is declared. speed.lua measures each declaration,
here on tiny shapes, and tells what it had no time for. usage: operations_test.py RILLE"""
import json, os, re, subprocess, sys, tempfile
from pathlib import Path

sys.dont_write_bytecode = True
here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "cli"))
from tap import check, finish

rille = os.path.abspath(sys.argv[1])


# Methods of docs/reference/tensor_*.md that need no declaration: they tell of a tensor, or make a view of it; what
# fills as full_like and rand do; a draw that hangs on the last bits of a sum.
UNDECLARED = set("""shape size dim numel  reshape view transpose squeeze unsqueeze select chunk split flatten
  zeros_like ones_like rand_like randn_like  multinomial""".split())


def run(*words, script="operations.lua"):
    """(exit code, figures by name, the error's message)"""
    with tempfile.TemporaryDirectory(prefix="rille-operations-") as home:
        env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=home, NO_COLOR="1")
        done = subprocess.run([rille, "--json", "run", str(here / script), *words], env=env, text=True,
                              capture_output=True, timeout=250, cwd=home)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {"error": {"message": done.stdout + done.stderr}}
    figures = {f["name"]: f["value"] for f in (said.get("result") or {}).get("figures", [])}
    return done.returncode, figures, said.get("error", {}).get("message", "")


code, figures, why = run()
check("all operations agree with float64", code == 0 and figures.get("cases (operation and type)", 0) >= 700, why)
check("most of them with gradients", figures.get("of them with gradients", 0) >= 500, figures)
slopes = "operations whose gradients agree with finite differences"
check("gradients agree with finite differences", figures.get(slopes, 0) >= 150, figures)
code, figures, why = run("--dtypes", "f64", "--only", "exp2", "--tolerance", "1e-6")
check("one that is off them is told by name", code == 1 and "exp2: gradient 1 is off finite differences" in why, why)
code, figures, why = run("--dtypes", "bf16", "--only", "exp", "--tolerance", "1e-6")
check("what is off is told by name and type", code == 1 and "exp bf16: values off by" in why, why)
code, figures, why = run("--dtypes", "f32", "--only", "attention, heads of 128")
check("cases are chosen by name and type", code == 0 and figures.get("cases (operation and type)") == 6, (figures, why))
late = "cases not reached, for time was over"
check("nothing was late there", figures.get(late) == 0, figures)
code, figures, why = run("--dtypes", "f32", "--only", "exp", "--seconds", "0")
check("what there was no time for is counted", code == 0 and figures.get(late, 0) >= 2 and
      figures.get("cases (operation and type)") == 0, (figures, why))
code, figures, why = run("--only", "no such operation")
check("nothing to run is an error", code == 1 and "no case has such a name" in why, why)

cases = (here / "operation_cases.lua").read_text()
methods = set()
for page in (here.parents[1] / "docs/reference").glob("tensor_*.md"):
    methods |= set(re.findall(r"^### Tensor:(\w+)\(", page.read_text(), re.M))
check("the reference lists methods", len(methods) > 100, methods)
missing = {name for name in methods - UNDECLARED if f'"{name}"' not in cases and f":{name}" not in cases}
check("each has a declaration", not missing, missing)
check("no method is called undeclared that is gone", UNDECLARED <= methods, UNDECLARED - methods)

tiny = ("--size", "tiny", "--rounds", "1")
code, figures, why = run(*tiny, script="speed.lua")
untimed = "operations and types not measured, for time was over"
check("the speed of each is measured", code == 0 and len(figures) > 350 and figures.get(untimed) == 0, why or figures)
check("each took some time", figures and all(value > 0 for name, value in figures.items() if name != untimed), figures)
code, figures, why = run(*tiny, "--seconds", "0", script="speed.lua")
check("what there was no time for is counted", code == 0 and figures.get(untimed, 0) > 350, why or figures)
finish()
