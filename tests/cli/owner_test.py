#!/usr/bin/env python3
"""Who may read and write Rille's folders, and whose folders Rille uses. usage: owner_test.py RILLE"""
import os, shutil, subprocess, sys, tempfile

import need
from tap import check, finish

need.met(lambda: "" if os.geteuid() == 0 else "folders of two users need root: sudo ./bootstrap test")
root = tempfile.mkdtemp(prefix="rille-owner-")
rille = root + "/rille"
ONE, OTHER = 61001, 61002


def run(user, home, config, *words, prefix=(), env=None):
    """With the usual mask of a system where each user has a group. env: other variables; None: without that one."""
    env = {**os.environ, "RILLE_HOME": f"{root}/{home}", "XDG_CONFIG_HOME": f"{root}/{config}", "NO_COLOR": "1",
           **(env or {})}
    env = {name: value for name, value in env.items() if value is not None}
    r = subprocess.run([*prefix, rille, *words], env=env, capture_output=True, text=True, timeout=60, cwd=root,
                       user=user, group=user, extra_groups=[], umask=0o002)
    return r.returncode, r.stdout + r.stderr


def folder(name, owner, mode):
    os.makedirs(f"{root}/{name}")
    os.chown(f"{root}/{name}", owner, owner)
    os.chmod(f"{root}/{name}", mode)


def mode(name):
    return oct(os.stat(f"{root}/{name}").st_mode & 0o777)


try:
    os.chmod(root, 0o777)
    shutil.copy(sys.argv[1], rille)
    open(root + "/box.lua", "w").write('require("rille").rent("box", { provider = "local", gpu = "cpu" }):exec("say", '
                                       '{ argv = { "true" } })\n')
    code, out = run(ONE, "home", "config", "run", "box.lua")
    check("a run of a plain user", code == 0, out)
    check("the folders are the user's alone", mode("home") == mode("config/rille") == "0o700",
          (mode("home"), mode("config/rille")))
    kept = [os.path.join(path, name)[len(root) + 1:] for path, _, names in os.walk(root + "/config") for name in names]
    check("so are identity and keys", "config/rille/install" in kept and "config/rille/ssh/secret" in kept and
          all(mode(name) == "0o600" for name in kept), [(name, mode(name)) for name in kept])
    os.chmod(root + "/config/rille", 0o775)
    run(ONE, "home", "config", "ps")
    check("a folder that was open is closed", mode("config/rille") == "0o700", mode("config/rille"))

    # An open folder of another user, who decides by it what is run and released.
    folder("foreign", OTHER, 0o777)
    code, out = run(ONE, "foreign", "config", "ps")
    check("another user's home is refused", code == 1 and f"belongs to another user ({OTHER})" in out, (code, out))
    check("with the way out", "RILLE_HOME" in out and f"chown -R {ONE} '{root}/foreign'" in out, out)
    check("and nothing is written there", os.listdir(root + "/foreign") == [], os.listdir(root + "/foreign"))
    folder("lent/rille", OTHER, 0o777)
    code, out = run(ONE, "fresh", "lent", "ps")
    check("so is another user's configuration", code == 1 and "belongs to another user" in out and
          "XDG_CONFIG_HOME" in out and os.listdir(root + "/lent/rille") == [], (code, out))

    # A HOME in which nothing can be made: RILLE_HOME has the identity, too.
    folder("others", OTHER, 0o755)
    unnamed = {"XDG_CONFIG_HOME": None, "HOME": root + "/others"}
    code, out = run(ONE, "alone", "", "run", "box.lua", env=unnamed)
    check("a run where HOME cannot be written", code == 0 and os.listdir(root + "/others") == [], out)
    first = open(root + "/alone/installation/install").read()
    check("keeps its identity in the home", len(first) == 13 and
          mode("alone/installation/install") == mode("alone/installation/ssh/secret") == "0o600", first)
    code, out = run(ONE, "alone", "", "ps", env={"XDG_CONFIG_HOME": None, "HOME": root})
    check("for ever", code == 0 and open(root + "/alone/installation/install").read() == first and
          not os.path.exists(root + "/.config"), out)
    code, out = run(ONE, "elsewhere", "others/named", "ps")
    check("a folder that is named and cannot be made is an error", code == 1 and
          "XDG_CONFIG_HOME names the folder" in out, out)
    folder("fixed/.config", 0, 0o755)
    unnamed["HOME"] = root + "/fixed"
    run(0, "roots", "", "run", "box.lua", env=unnamed)
    known = open(root + "/fixed/.config/rille/install").read()
    fixed = ("unshare", "-m", "sh", "-c", f'mount --bind {root}/fixed {root}/fixed && mount -o remount,bind,ro '
             f'{root}/fixed && exec "$@"', "sh")
    code, out = run(0, "roots", "", "run", "box.lua", prefix=fixed, env=unnamed)
    check("a read-only HOME keeps the identity that it has", code == 0 and
          not os.path.exists(root + "/roots/installation"), out)
    check("which is the same", open(root + "/fixed/.config/rille/install").read() == known)

    # A container: its root uses the mounted home of a user.
    code, out = run(0, "home", "config", "ps")
    check("root uses a user's home", code == 0 and "box.lua" in out, out)
    # A volume that root has made for all: any user could write a journal there, and this one cannot close it.
    folder("volume", 0, 0o777)
    code, out = run(ONE, "volume", "config", "ps")
    check("an open folder of root is refused", code == 1 and "mode 0777" in out and os.listdir(root + "/volume") == [],
          (code, out))
    check("with its way out", f"chown {ONE} '{root}/volume'" in out and "RILLE_HOME" in out, out)
    folder("shared/rille", 0, 0o775)
    code, out = run(ONE, "fresh", "shared", "ps")
    check("so is an open configuration", code == 1 and "mode 0775" in out and "XDG_CONFIG_HOME" in out, (code, out))
    os.chown(root + "/volume", ONE, ONE)
    code, out = run(ONE, "volume", "config", "ps")
    check("given to the user, it is closed and used", code == 0 and mode("volume") == "0o700", (code, out))

    # The owner is an id that the system cannot map, as on NFS or in a user namespace; "nobody" has its number.
    unmapped = int(open("/proc/sys/kernel/overflowuid").read())
    folder("nfs", unmapped, 0o755)
    code, out = run(ONE, "nfs", "config", "ps")
    check("refused without access", code == 1 and "belongs to another user" in out, (code, out))
    os.chmod(root + "/nfs", 0o777)
    code, out = run(ONE, "nfs", "config", "ps")
    check("refused where others may write", code == 1 and "mode 0777" in out and os.listdir(root + "/nfs") == [],
          (code, out))
    os.chmod(root + "/nfs", 0o755)
    able = ["setpriv", f"--reuid={ONE}", f"--regid={ONE}", "--clear-groups", "--inh-caps=+dac_override",
            "--ambient-caps=+dac_override"]
    code, out = run(0, "nfs", "config", "ps", prefix=able)
    check("used by the user who alone may write", code == 0 and "journal.db" in os.listdir(root + "/nfs"), (code, out))
    os.chown(root + "/nfs", OTHER, OTHER)
    code, out = run(0, "nfs", "config", "ps", prefix=able)
    check("an owner with a known id is another user", code == 1 and "belongs to another user" in out, (code, out))
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
