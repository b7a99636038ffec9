#!/usr/bin/env python3
"""What a new user does wrong, on each provider's fake: one message that names the value and says what to do, and an
exit code. In the end no secret has been shown or written.

usage: mistakes_test.py RILLE PROVIDER [--show]   --show: prints each message, for people to judge
"""
import contextlib, http.server, json, socket, sys, threading
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from proxy import Proxy
from tap import check, finish
from user import User, errors_in

rille, provider = sys.argv[1:3]
show = "--show" in sys.argv
TYPOS = dict(aws="us-esat-1", alibaba="cn-hangzou", tencent="ap-guangzou", huawei="cn-nort-4", gcp="us-centrall",
             azure="eastuss", runpod="CA-MTL-11", vast="Norvay, NO", kubernetes="zone-aa")
TYPOS["lambda"] = "us-esat-1"
REGIONAL = {"aws", "alibaba", "tencent", "huawei", "azure", "gcp"}
KEYS_OF_MACHINES = {"aws", "alibaba", "tencent", "huawei"}
# What that provider says of temporary credentials whose time is over. The others know lasting keys only, or tokens that
# the driver itself asks for.
EXPIRED = dict(aws=dict(code="ExpiredToken", status=400), alibaba=dict(code="InvalidSecurityToken.Expired", status=403),
               tencent=dict(code="AuthFailure.TokenFailure", status=200))
# What they list by the place has nothing elsewhere; whether there is such a place, they do not say.
LISTED = ("runpod", "lambda", "vast", "kubernetes")
RENT = 'local box = rille.rent("box", { provider = "%s", unguarded = true, %s })\nreturn box:describe().name\n'
user = User(rille, provider)


def mistake(name, done, kind, *words, code=1):
    """The command has failed with one message, of this kind, in which these words stand."""
    status, out, err = done
    errors = errors_in(err)
    text = " | ".join(errors[0]) if errors else ""
    missing = [w for w in words if w.lower() not in text.lower()]
    hinted = bool(errors) and len(errors[0][2]) > 10
    well = status == code and len(errors) == 1 and errors[0][0] == kind and not missing and hinted
    check(f"{name}: {kind}, one message, a hint", well, dict(status=status, missing=missing, out=out, err=err))
    if show:
        print(f"--- {provider}, {name}: exit {status}\n{out[-300:]}{err}")


def offers(**more):
    return user.rille("offers", "--refresh", "--provider", provider, "--gpu", "A100", **more)


def rent(options, **more):
    return user.run(RENT % (provider, options), **more)


def wrong_secret():
    """(environment, settings) with a secret that is none of theirs."""
    secrets = {name: value for name, value in user.told["env"].items() if value in user.told["secrets"]}
    if secrets:
        wrong = {name: value[:-4] + ("aaaa" if value[-4:] != "aaaa" else "bbbb") for name, value in secrets.items()}
        user.secrets += wrong.values()
        return user.env(**wrong), None
    file = Path(user.root, "home", "own")
    old = user.told["settings"].get("credentials") or user.told["settings"]["kubeconfig"]
    text = Path(old).read_text()
    if provider == "gcp":
        sys.path.insert(0, str(here / "fakes"))
        from rsa_key import RsaKey
        key = json.loads(text)
        text = json.dumps(dict(key, private_key=RsaKey("another").pem))
        changed = dict(credentials=str(file))
    else:
        for secret in user.told["secrets"]:
            text = text.replace(secret, "wrong-" + secret[6:])
        changed = dict(kubeconfig=str(file))
    file.write_text(text)
    names = {name: str(file) for name, value in user.told["env"].items() if value == old}
    return user.env(**names), user.settings(**changed)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def refusing_service():
    """The address of a metadata service that knows nothing of what it is asked: as on a machine of another cloud."""
    class Refuses(http.server.BaseHTTPRequestHandler):
        def refuse(self):
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()
        do_GET = do_PUT = refuse

        def log_message(self, *_):
            pass
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def who_we_are():
    bare = user.settings(**{name: None for name in ("credentials", "kubeconfig")})
    nobody = user.env(**{name: None for name in user.told["env"]})
    # Of a cluster one does not even know where it is.
    mistake("no credentials", offers(env=nobody, settings=bare), "config" if provider == "kubernetes" else "auth",
            provider)
    if provider in KEYS_OF_MACHINES:
        with refusing_service() as url:
            settings = user.settings(endpoints=dict(user.told["settings"]["endpoints"], metadata=url))
            mistake("no credentials on another cloud's machine", offers(env=nobody, settings=settings), "auth",
                    "there are no credentials", "role")
    env, settings = wrong_secret()
    mistake("a wrong secret", offers(env=env, settings=settings), "auth", provider)
    if provider in EXPIRED:
        user.ask("fault", kind="refuse", operation="*", times=1000, message="The security token is expired",
                 **EXPIRED[provider])
        mistake("a token that expired", offers(env=user.env(**user.told["temporary"])), "auth", provider, "expired")
    else:
        user.ask("fault", kind="auth", operation="*", times=1000)
        mistake("a key that is taken back", offers(), "auth", provider)
    status, out, err = user.rille("leases", "--all-providers", env=user.env(**user.told.get("temporary", {})))
    told = "there may be some" in out and f"could not ask {provider}" in out and "hint: " in out
    check("machines that could not be listed are not reported as none", status == 3 and told, out + err)
    user.ask("calm")


def what_is_wanted():
    typo = TYPOS[provider]
    # Where a call lists all regions, one of which nothing is heard may also be full.
    zone = dict(gcp=typo + "-a", huawei=typo + "a", alibaba=typo + "-i").get(provider)
    mistake("a region that does not exist", offers(settings=user.settings(regions=[typo], zone=zone)),
            "capacity" if provider in LISTED else "config", typo)
    if provider in REGIONAL:
        mistake("a field that is nearly right", offers(settings=user.settings(region=typo)), "config", "did you mean",
                "regions")
        mistake("a region that is not set up", rent('gpu = "A100", region = "nowhere-9"'), "capacity", "nowhere-9",
                "`regions` of its settings")
    mistake("a GPU that does not exist", rent('gpu = "H1O0"'), "capacity", "H1O0", 'did you mean gpu = "H100"')
    mistake("a cap below the market", rent('gpu = "A100", max_price = 0.0001'), "capacity", "A100", "max_price")
    if provider not in ("aws", "azure", "gcp", "alibaba"):
        mistake("a reservation where there are none", rent('gpu = "A100", reservation = "mine"'), "invalid",
                f"{provider} has no reservations", "supported by: slurm, aws")
    user.ask("set", quota=0)
    mistake("no quota", rent('gpu = "A100"'), "quota", provider)
    user.ask("set", quota=None)
    alive = user.ask("state")["alive"]
    check("nothing was rented by mistake", alive == 0, alive)


def the_network():
    proxy = Proxy()
    status, out, err = offers(env=user.env(http_proxy=proxy.url))
    check("through a proxy: the calls go through it", status == 0 and "A100" in out and proxy.asked, out + err)
    proxy.close()
    dead = f"http://127.0.0.1:{free_port()}"
    mistake("a proxy that is dead", offers(env=user.env(http_proxy=dead)), "network", dead, "http_proxy", "NO_PROXY")
    with_password = "http://me:the-own-word-of-a-proxy@127.0.0.1:%s"
    for name, says, kind, *words in (
        ("a proxy that wants a password", (407, b""), "auth", "HTTP status 407", "credentials of the proxy"),
        ("a proxy with a login page", (200, b"<html><body>Please log in</body></html>"), "network",
         "the response is not a valid", "perhaps a proxy or a network's login page", "http_proxy")):
        proxy = Proxy(says)
        url = with_password % proxy.server.server_port
        mistake(name, offers(env=user.env(http_proxy=url)), kind, *words)
        check(f"{name}: its own password is not shown", "the-own-word" not in user.shown[-1], user.shown[-1])
        proxy.close()
    user.ask("fault", kind="skew")
    status, out, err = offers()
    check("a clock that is off by an hour: it is corrected", status == 0 and "A100" in out and not errors_in(err),
          out + err)
    user.ask("calm")


def certificates():
    """https, with an untrusted certificate."""
    settings, env = user.settings(), user.env()
    if provider == "kubernetes":  # whose users have the certificate in their kubeconfig
        own = Path(user.root, "home", "own")
        kube = json.loads(Path(settings["kubeconfig"]).read_text())
        del kube["clusters"][0]["cluster"]["certificate-authority"]
        own.write_text(json.dumps(kube))
        settings, env = dict(settings, kubeconfig=str(own)), user.env(KUBECONFIG=str(own))
    mistake("an untrusted certificate", offers(settings=settings, env=env), "network", "certificate",
            "SSL_CERT_FILE")
    status, out, err = offers(env=user.env(SSL_CERT_FILE=user.told["ca"]))
    check("what the hint says helps", status == 0 and "A100" in out, out + err)
    proxy = Proxy()
    status, out, err = offers(env=user.env(SSL_CERT_FILE=user.told["ca"], HTTPS_PROXY=proxy.url))
    check("through a tunnel of the proxy", status == 0 and "A100" in out and proxy.asked, out + err)
    proxy.close()
    proxy = Proxy((407, b""))
    mistake("a tunnel whose proxy wants a password",
            offers(env=user.env(SSL_CERT_FILE=user.told["ca"], HTTPS_PROXY=proxy.url)), "auth", proxy.url, "407",
            "credentials of the proxy")
    proxy.close()


def no_secret(name):
    leaks = user.leaks()
    check(f"{name}: no secret in {len(user.shown)} outputs, nor in a file", not leaks, leaks)


try:
    who_we_are()
    what_is_wanted()
    the_network()
    no_secret("http")
finally:
    user.close()
user = User(rille, provider, "--tls")
try:
    certificates()
    no_secret("https")
finally:
    user.close()
finish()
