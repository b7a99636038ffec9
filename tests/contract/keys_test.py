#!/usr/bin/env python3
"""Each way in which a provider's own tools find keys, on its fake: they are found, named, used, and stand nowhere.

usage: keys_test.py RILLE PROVIDER
"""
import json, os, shutil, sys, tempfile
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from tap import check, finish
from user import User, errors_in

rille, provider = sys.argv[1:3]
PREFIXES = ("AWS_", "ALIBABA_CLOUD_", "TENCENTCLOUD_", "TKE_", "TCCLI_", "HUAWEICLOUD_", "GOOGLE_", "CLOUDSDK_",
            "AZURE_")
# What each looks into, in this order, before it gives up.
ORDER = dict(
    aws="AWS_ACCESS_KEY_ID|role of the profile 'default'|AWS_WEB_IDENTITY_TOKEN_FILE|~/.aws/credentials|container|"
    "this machine's role", alibaba="ALIBABA_CLOUD_ACCESS_KEY_ID|ALIBABA_CLOUD_OIDC_TOKEN_FILE|~/.aliyun/config.json|"
    ".alibabacloud/credentials|this machine's role", tencent="TENCENTCLOUD_SECRET_ID|TKE_WEB_IDENTITY_TOKEN_FILE|"
    ".tencentcloud/credentials|~/.tccli|this machine's role", huawei="HUAWEICLOUD_SDK_ID_TOKEN_FILE|HUAWEICLOUD_SDK_AK|"
    ".huaweicloud/credentials|this machine's role", gcp="a key file|this machine's identity",
    azure="AZURE_CLIENT_SECRET|AZURE_CLIENT_CERTIFICATE_PATH|AZURE_FEDERATED_TOKEN_FILE|this machine's identity|az")
RENT = """local rille = require "rille"
local box = rille.rent("box", { provider = "%s", unguarded = true, gpu = "A100" })
return box:describe().name
"""

user = User(rille, provider)
bare = {name: None for name in {**user.told["env"], **os.environ} if name.startswith(PREFIXES)}


class Home:
    """A home with the files of one way in it, apart from what is searched for secrets."""

    def __init__(self, way):
        self.path = tempfile.mkdtemp(prefix="rille-keys-")
        fill = lambda text: text.replace("{home}", self.path)
        for name, text in way.get("files", {}).items():
            file = Path(self.path, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(fill(text))
            file.chmod(0o700 if name.startswith("bin/") else 0o600)
        variables = {name: fill(value) for name, value in way.get("env", {}).items()}
        self.env = user.env(**dict(bare, HOME=self.path, **variables))
        settings = user.settings(credentials=None)
        endpoints = dict(settings["endpoints"], **way.get("endpoints", {}))
        self.settings = dict(settings, **way.get("settings", {}), endpoints=endpoints)
        self.found = fill(way.get("found", ""))

    def rille(self, *words):
        return user.rille(*words, env=self.env, settings=self.settings)

    def close(self):
        shutil.rmtree(self.path, ignore_errors=True)


def loans():
    return len(user.ask("state")["loans"])


def offers(home):
    return home.rille("offers", "--refresh", "--provider", provider, "--gpu", "A100")


def try_way(way):
    home, name = Home(way), way["name"]
    lent = way["token"] or any(word in way["found"] for word in ("role", "identity", "impersonated"))
    try:
        before = loans()
        status, out, err = home.rille("doctor", "--provider", provider, "--json")
        rows = {row["what"]: row for row in json.loads(out)[0]["checks"]} if status == 0 else {}
        found = rows.get("credentials", {}).get("found", "")
        check(f"{name}: the doctor says where they are from", home.found in found, (found, home.found, out, err))
        check(f"{name}: keys that were lent now", loans() > before or not lent, before)
        status, out, err = offers(home)
        check(f"{name}: the calls are signed by them", status == 0 and "A100" in out, (out, err))
        if way["token"]:
            Path(home.path, way["token"]).unlink()
            status, out, err = offers(home)
            told = errors_in(err)
            check(f"{name}: without the token's file: which one, and what names it", status == 1 and len(told) == 1 and
                  home.path + "/token" in told[0][1] and len(told[0][2]) > 10, err)
            Path(home.path, way["token"]).write_text("not.what.it-should-be")
            status, out, err = offers(home)
            told = errors_in(err)
            check(f"{name}: another token is refused, with a hint", status == 1 and len(told) == 1 and
                  told[0][0] == "auth" and len(told[0][2]) > 10, err)
    finally:
        home.close()


def try_wrong_way(way):
    """One message, of what is wrong and what to do; also where the program that has the keys talks too much."""
    home, name = Home(way), way["name"]
    try:
        status, out, err = offers(home)
        told = (errors_in(err) or [("", "", "")])
        check(f"{name}: one error, of the kind {way['kind']}", status == 1 and len(told) == 1 and
              told[0][0] == way["kind"], (told, out, err))
        check(f"{name}: it says what is wrong, and what to do", way["says"] in told[0][1] and way["hint"] in told[0][2],
              (way["says"], way["hint"], told))
    finally:
        home.close()


try:
    subscription = {k: v for k, v in user.told["env"].items() if k == "AZURE_SUBSCRIPTION_ID"}
    nobody = Home(dict(env=subscription))
    status, out, err = offers(nobody)
    told, at = (errors_in(err) or [("", "", "")])[0], 0
    for part in ORDER[provider].split("|"):
        at = told[1].find(part, at)
        check(f"without keys: it has looked into {part}, in order", at >= 0, told)
        at = max(at, 0)
    check("without keys: what to do", status == 1 and told[0] == "auth" and len(told[2]) > 10, err)
    nobody.close()
    for one in user.told["ways"]:
        try_way(one)
    for one in user.told["wrong_ways"]:
        try_wrong_way(one)

    # Once for all of a command's calls; and in a run, whose journal is searched, too.
    home = Home(user.told["ways"][0])
    Path(user.root, "flow.lua").write_text(RENT % provider)
    before = loans()
    status, out, err = home.rille("run", user.root + "/flow.lua")
    check("a run with such keys", status == 0, (out, err))
    check("which are asked for once in a process, not at each call", 1 <= loans() - before <= 4, loans() - before)
    check("and nothing stays rented", user.ask("state")["alive"] == 0, user.ask("state")["machines"])
    home.close()

    user.secrets = sorted({*user.secrets, *user.ask("state")["secrets"]})
    leaks = user.leaks()
    check(f"none of {len(user.secrets)} secrets in {len(user.shown)} outputs, nor in a file", not leaks, leaks)
finally:
    user.close()
finish()
