#!/usr/bin/env python3
"""How the provider `kubernetes` finds its cluster: a client certificate, a kubeconfig in YAML, several of them, another
context, a plug-in that gives keys, and what is wrong with one. usage: kube_access_test.py RILLE"""
import base64, copy, json, os, shutil, subprocess, sys, tempfile
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

        # Two contexts, of which the current one leads nowhere.
        two = copy.deepcopy(server.config)
        two["contexts"].append({"name": "lost", "context": {"cluster": "lost", "user": "fake"}})
        two["clusters"].append({"name": "lost", "cluster": {"server": "http://127.0.0.1:9"}})
        two["current-context"] = "lost"
        count, said = offers(kubeconfig=write("two", two), context="fake")
        check("a context can be chosen", count > 0, said)
        count, said = offers(kubeconfig=write("two.yaml", two, yaml=True), context="fake")
        check("also where kubectl reads the file", count > 0, said)
        said = offers(kubeconfig=f"{root}/two", context="fak")[1]
        check("one that is not there is said to be so", "has no context 'fak'" in said and
              "did you mean 'fake'?" in said, said)
        said = offers(kubeconfig=f"{root}/two.yaml", context="fak")[1]
        check("by kubectl, too", "cannot locate context fak" in said, said)
        users = {"users": two.pop("users"), "current-context": "fake"}
        count, said = offers(f"{write('users', users)}:{root}/none.yet:{write('rest', two)}")
        check("of several files the first that says something says it", count > 0, said)
        count, said = offers(kubeconfig=f"{root}/users:{root}/rest")
        check("so they may stand in the settings", count > 0, said)
        del server.config["clusters"][0]["cluster"]["server"]
        check("one that names no server, too", "names no server" in offers(kubeconfig=write("no", server.config))[1])
    # Plug-ins: their input and their output.
    Path(root, "bin/keys").write_text(f"""#!{sys.executable}
import os, sys
open("{root}/asked", "a").write(os.environ.get("KUBERNETES_EXEC_INFO", "") + "\\n")
open("{root}/words", "w").write(" ".join(sys.argv[1:]) + os.environ.get("PLACE", ""))
print(open("{root}/answer").read())
""")
    os.chmod(root + "/bin/keys", 0o755)

    def plugged(server, status, **more):
        config = copy.deepcopy(server.config)
        version = "client.authentication.k8s.io/v1"
        Path(root, "answer").write_text(json.dumps(dict(apiVersion=version, kind="ExecCredential", status=status)))
        Path(root, "asked").unlink(missing_ok=True)
        config["users"][0]["user"] = {"exec": dict({
            "apiVersion": version, "command": "keys", "args": ["get", "them"],
            "env": [{"name": "PLACE", "value": ", please"}], "interactiveMode": "IfAvailable",
            "provideClusterInfo": True, "installHint": "get it from the shop"}, **more)}
        config["clusters"][0]["cluster"]["extensions"] = [
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "us"}}]
        found = offers(kubeconfig=write("plugged", config))
        asked = Path(root, "asked")
        return *found, [json.loads(line or "{}") for line in asked.read_text().splitlines()] if asked.exists() else []

    with Server() as server:
        key = server.told["secrets"][0]
        count, said, asked = plugged(server, {"token": key, "expirationTimestamp": "2099-01-01T00:00:00Z"})
        check("a plug-in gives a token", count > 0 and Path(root, "words").read_text() == "get them, please", said)
        check("is asked once for all calls", len(asked) == 1, asked)
        spec = asked[0]["spec"]
        check("and gets the cluster's data", asked[0]["apiVersion"].endswith("/v1") and asked[0]["kind"] ==
              "ExecCredential" and spec == {"interactive": False, "cluster": {
                  "server": server.config["clusters"][0]["cluster"]["server"], "config": {"audience": "us"}}}, asked)
        count, said, asked = plugged(server, {"token": key, "expirationTimestamp": "2020-01-01T00:00:00Z"},
                                     provideClusterInfo=False)
        check("what has expired is asked for again", count > 0 and len(asked) > 1, asked)
        check("and gets the cluster's data only on request", "cluster" not in asked[0]["spec"], asked)
        said = plugged(server, {"token": key, "expirationTimestamp": "tomorrow"})[1]
        check("a time that is none is said to be so", "'tomorrow'" in said, said)
        said = plugged(server, {"token": key}, command="no-such-keys")[1]
        check("one that is not installed, with its hint", "'no-such-keys' cannot be started" in said and
              "get it from the shop" in said, said)
        said = plugged(server, {"token": key}, interactiveMode="Always")[1]
        check("one that wants a terminal", "needs a terminal" in said, said)
        said = plugged(server, {})[1]
        check("one that gives nothing", "gives no token" in said and key not in said, said)
        said = plugged(server, {"clientKeyData": "half-of-it"})[1]
        check("and half of a certificate", "only one of clientCertificateData" in said and
              "half-of-it" not in said, said)
    with Server("--tls", "--certified") as server:
        folder = Path(server.file).parent
        user = server.config["users"][0]["user"]
        pair = {"clientCertificateData": (folder / "client.pem").read_text(),
                "clientKeyData": base64.b64decode(user["client-key-data"]).decode()}
        count, said, asked = plugged(server, pair)
        check("a plug-in gives a certificate", count > 0, said)
        ca = base64.b64decode(asked[0]["spec"]["cluster"]["certificate-authority-data"]).decode()
        check("and gets the cluster's certificate authority", len(asked) == 1 and "BEGIN CERTIFICATE" in ca, asked)
        Path(root, "answer").unlink()
        check("its key is written nowhere", not [p for p in Path(root).rglob("*") if p.is_file() and
                                                pair["clientKeyData"].splitlines()[1] in p.read_text(errors="replace")])

    check("so is none at all", "no cluster is named" in offers()[1], offers()[1])
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
