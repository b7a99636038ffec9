#!/usr/bin/env python3
"""operations.lua with the CPU in both places: every case runs in every type that it says, and what is off is told by
name. usage: operations_test.py RILLE"""
import json, os, subprocess, sys, tempfile
from pathlib import Path

sys.dont_write_bytecode = True
here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "cli"))
from tap import check, finish

rille = os.path.abspath(sys.argv[1])


def run(*words):
    """(exit code, figures by name, the error's message)"""
    with tempfile.TemporaryDirectory(prefix="rille-operations-") as home:
        env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=home, NO_COLOR="1")
        done = subprocess.run([rille, "--json", "run", str(here / "operations.lua"), *words], env=env, text=True,
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
code, figures, why = run("--dtypes", "bf16", "--only", "exp", "--tolerance", "1e-6")
check("what is off is told by name and type", code == 1 and "exp bf16: values off by" in why, why)
code, figures, why = run("--dtypes", "f32", "--only", "attention, heads of 128")
check("cases are chosen by name and type", code == 0 and figures.get("cases (operation and type)") == 6, (figures, why))
code, figures, why = run("--only", "no such operation")
check("nothing to run is an error", code == 1 and "no case has such a name" in why, why)
finish()
