#!/usr/bin/env python3
"""box:exec with `container`: the command that the engine is given, a program that outlives its runner, and what ends
it: a timeout, the agent's death, the release. On a stand-in for Docker. usage: container_test.py RILLE"""
import json, os, shutil, signal, subprocess, sys, tempfile, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from docker import Docker
from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-container-")
Path(root, "bin").mkdir()
for program in ("sh", "env", "sleep", "cat", "rm", "mkdir", "grep"):  # and no docker
    os.symlink(shutil.which(program), f"{root}/bin/{program}")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1")
env.pop("CUDA_VISIBLE_DEVICES", None)
BOX = 'local rille = require "rille"\nlocal box = rille.rent("b", { provider = "local", ttl = "1h" })\n'


def with_engine(engine):
    return dict(env, PATH=f"{engine.folder}/bin:{root}/bin")


def script(source, environment):
    Path(root, "script.lua").write_text(BOX + source)
    r = subprocess.run([rille, "--json", "run", root + "/script.lua"], env=environment, capture_output=True, text=True,
                       timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def result_of(done):
    return json.loads(done[1]).get("result") if done[0] == 0 else None


def until(holds):
    end = time.monotonic() + 60
    while time.monotonic() < end and not holds():
        time.sleep(0.02)
    return holds()


def expected(engine, words, image, argv, more=()):
    """The command, but for the container's name and the instance's folder, which are taken from it."""
    name, work = words[words.index("--name") + 1], words[words.index("-w") + 1]
    user = ["--user", f"{os.getuid()}:{os.getgid()}"] if os.getuid() and engine == "docker" else []
    return ["run", "--rm", "--name", name, "--network", "host", "--ipc", "host", *user, "-v", f"{work}:{work}", "-w",
            work, *[w for v in (*more, "RILLE_INSTANCE", "RILLE_CALL") for w in ("-e", v)], image, *argv]


def runs(docker):
    argv = ["sh", "-c", "echo $SECRET $IMAGE >seen; echo said; exit 3"]
    done = script("""
local result = box:exec("work", { container = "example/train:1", check = false, env = { SECRET = "hunter2" },
  argv = { "sh", "-c", "echo $SECRET $IMAGE >seen; echo said; exit 3" } })
box:get("seen", "seen")
return result""", with_engine(docker))
    check("a program runs in the image, with its exit code", (result_of(done) or {}).get("code") == 3, done)
    check("its files are the instance's, its variables are there",
          Path(root, "seen").exists() and Path(root, "seen").read_text() == "hunter2 example/train:1\n")
    check("what it says is heard", "said" in done[1] + done[2], done)
    command = docker.commands[0] if docker.commands else ["-", "--name", "", "-w", ""]
    check("the command is docker run, without GPUs where there are none",
          command == expected("docker", command, "example/train:1", argv, ["SECRET"]), command)
    check("no secret stands in it, and it is all", "hunter2" not in json.dumps(docker.commands) and
          len(docker.commands) == 1, docker.commands)
    check("nothing is left", not docker.containers, docker.containers)


def calls(docker):
    """A Lua function there: its result, log, checkpoints and errors come by the engine's standard streams."""
    done = script("""
local result = box:call("work", { container = "example/lua:1", args = 40, checkpoint = rille.home }, function(n)
  print("said there")
  rille.progress { what = "work", done = 1, total = 2 }
  local file = io.open("made", "w") file:write("x") file:close()
  return { sum = n + 2, image = os.getenv("IMAGE"), input = io.read("*a") }
end)
local ok, err = pcall(box.call, box, "fail", { container = "example/lua:1" }, function() error("by intent") end)
return { result = result, message = err.message, made = box:get("made", "made").files }""", with_engine(docker))
    got = result_of(done) or {}
    check("a function runs in the image", got.get("result") == {"sum": 42, "image": "example/lua:1", "input": ""}, done)
    check("and fails there as it does elsewhere", "by intent" in got.get("message", ""), done)
    check("its log and its files are there", "said there" in done[1] + done[2] and got.get("made") == 1, done)
    command = docker.commands[0] if docker.commands else []
    check("Rille goes along, and the call's folder, read-only", "-i" in command and
          len([w for w in command if w.endswith(":ro")]) == 2, command)
    check("nothing is left of it", not docker.containers, docker.containers)


def does_not_start(docker):
    done = script('box:exec("w", { container = "no/such:image", argv = { "true" } })', with_engine(docker))
    check("an image that there is not is an error, with the engine's words", done[0] == 1 and
          "could not start the image 'no/such:image'" in done[1] and "Unable to find image" in done[1], done)
    done = script('box:exec("w", { container = "x", argv = { "true" } })', dict(env, PATH=root + "/bin"))
    check("so is an instance without docker", done[0] == 1 and "no docker and no podman" in done[1], done)
    done = script('box:exec("w", { container = "--privileged", argv = { "true" } })', with_engine(docker))
    check("an option is not the name of an image", done[0] == 1 and "is not the name of an image" in done[1], done)


def times_out(docker):
    done = script('box:exec("w", { container = "x", timeout = "300ms", argv = { "sleep", "1000" } })',
                  with_engine(docker))
    check("a timeout ends the container", done[0] != 0 and "took longer than its timeout" in done[1] and
          not docker.containers, (done, docker.containers))
    check("by its name", docker.commands[-1][0] in ("rm", "container"), docker.commands)


def begin(source, docker):
    Path(root, "long.lua").write_text(BOX + source)
    return subprocess.Popen([rille, "--json", "run", root + "/long.lua"], env=with_engine(docker), cwd=root,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


LONG = """
box:exec("w", { container = "x", argv = { "sh", "-c", "echo . >>begun; while [ ! -e %s ]; do sleep 0.05; done" } })
box:get("begun", "begun")
return true"""


def outlives_runner(docker):
    runner = begin(LONG % (root + "/go"), docker)
    until(lambda: docker.containers)
    runner.kill()
    runner.communicate()
    check("it outlives a killed runner", len(docker.containers) == 1)
    Path(root, "go").touch()
    r = subprocess.run([rille, "--json", "resume", "last"], env=with_engine(docker), capture_output=True, text=True,
                       timeout=120, cwd=root)
    check("which joins it again", r.returncode == 0 and Path(root, "begun").read_text() == ".\n", r.stdout + r.stderr)
    os.unlink(root + "/go")


def outlives_no_agent(docker):
    runner = begin(LONG % (root + "/go"), docker)
    until(lambda: docker.containers)
    locks = list(Path(root, "home/instances").glob("i-*/agent.lock"))
    os.kill(json.loads(locks[0].read_text())["pid"], signal.SIGKILL)
    until(lambda: len([c for c in docker.commands if c[0] == "run"]) == 2)
    Path(root, "go").touch()
    out, err = runner.communicate(timeout=60)
    check("after its agent was killed it runs again", runner.returncode == 0 and
          Path(root, "begun").read_text() == ".\n.\n", out + err)
    check("never twice at a time", docker.most == 1, docker.most)
    os.unlink(root + "/go")


def ends_with_release(docker):
    runner = begin(LONG % (root + "/never"), docker)
    until(lambda: docker.containers)
    runner.kill()
    runner.communicate()
    r = subprocess.run([rille, "release", "last"], env=with_engine(docker), capture_output=True, text=True,
                       timeout=120, cwd=root)
    check("a release ends it", r.returncode == 0 and not docker.containers, (r.stdout, r.stderr, docker.containers))


try:
    for part in (runs, calls, does_not_start, times_out, outlives_runner, outlives_no_agent, ends_with_release):
        with Docker() as engine:
            part(engine)
    with Docker("podman") as engine:
        done = script('box:exec("w", { container = "x", argv = { "true" } })\nreturn 1', with_engine(engine))
        check("podman does where there is no docker", result_of(done) == 1 and
              engine.commands[0] == expected("podman", engine.commands[0], "x", ["true"]), (done, engine.commands))
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
