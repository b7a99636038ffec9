#!/usr/bin/env python3
"""How the provider `kubernetes` finds its cluster: a client certificate, a kubeconfig in YAML, several of them, and
what is wrong with one. usage: kube_access_test.py RILLE"""
import json, os, shutil, subprocess, sys, tempfile
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
import kubelet
from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-kube-access-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", HOME=root, NO_COLOR="1",
           RILLE_PROVIDERS=root + "/providers.json")
env.pop("KUBECONFIG", None)
Path(root, "bin").mkdir()
Path(root, "bin/kubectl").write_text(kubelet.KUBECTL.replace("PYTHON", sys.executable).replace("FOLDER", root))
os.chmod(root + "/bin/kubectl", 0o755)


class Server:
    """A fake, and the kubeconfig that leads to it."""

    def __init__(self, *words):
        self.process = subprocess.Popen([sys.executable, "-B", str(here / "fakes/kubernetes.py"), *words],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.told = json.loads(self.process.stdout.readline())
        self.file = self.told["settings"]["kubeconfig"]
        self.config = json.loads(Path(self.file).read_text())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)


def offers(path="", **settings):
    Path(root, "providers.json").write_text(json.dumps({"kubernetes": dict(settings, price=1)}))
    done = subprocess.run([rille, "offers", "--json", "--refresh", "--provider", "kubernetes"], env=dict(env, **(
        {"KUBECONFIG": path} if path else {}), PATH=f"{root}/bin:{env['PATH']}"), capture_output=True, text=True,
        timeout=60, cwd=root)
    found = json.loads(done.stdout) if done.returncode == 0 else []
    return len([o for o in found if o.get("gpu") == "T4"]), done.stdout + done.stderr


def write(name, config, yaml=False):
    """In YAML it is what the stand-in for kubectl understands alone."""
    Path(root, name).write_text(("# yaml\n" if yaml else "") + json.dumps(config))
    return f"{root}/{name}"


try:
    with Server("--tls", "--certified") as server:
        count, said = offers(kubeconfig=server.file)
        check("a client certificate lets in", count > 0, said)
        key = server.config["users"][0]["user"].pop("client-key-data")
        count, said = offers(kubeconfig=write("moved", server.config))
        check("its file is looked for beside the kubeconfig", f"'{root}/client.pem'" in said, said)
        server.config["users"][0]["user"]["client-certificate"] = os.path.dirname(server.file) + "/client.pem"
        count, said = offers(kubeconfig=write("half", server.config))
        check("half of one is named", "only one of client-certificate" in said, said)
        server.config["users"][0]["user"] = {"token": "x"}
        count, said = offers(kubeconfig=write("none", server.config))
        check("without it the server refuses", count == 0 and '"kind": "network"' in said, said)
        check("the key is written nowhere", not [p for p in Path(root).rglob("*") if p.is_file() and
                                                key in p.read_text(errors="replace")])
    with Server() as server:
        check("KUBECONFIG names the cluster", offers(server.file)[0] > 0)
        count, said = offers(kubeconfig=write("yaml", server.config, yaml=True))
        check("kubectl reads YAML", count > 0, said)
        asked = json.loads(Path(root, "kubectl.log").read_text().splitlines()[0])
        check("with its secrets, and only the context that counts", asked[:2] == ["config", "view"] and
              {"--raw", "--minify", "--flatten"} <= set(asked), asked)
        count, said = offers(f"{root}/yaml:{root}/none")
        check("and several files", count > 0, said)
        count, said = offers(kubeconfig=write("torn", "}"))
        check("one that kubectl cannot read is said to be so", "kubectl cannot read" in said, said)
        del server.config["clusters"][0]["cluster"]["server"]
        check("one that names no server, too", "names no server" in offers(kubeconfig=write("no", server.config))[1])
    check("so is none at all", "no cluster is named" in offers()[1], offers()[1])
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
