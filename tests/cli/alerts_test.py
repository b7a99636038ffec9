#!/usr/bin/env python3
"""Alerts: web hooks and e-mail, over real sockets; down servers, kills, secrets. usage: alerts_test.py RILLE"""
import http.server, json, os, shutil, signal, socketserver, sqlite3, ssl, subprocess, sys, tempfile, threading
import urllib.request

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-alerts-")


class Hook(http.server.BaseHTTPRequestHandler):
    got, status = [], 204

    def do_POST(self):
        Hook.got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(Hook.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Smtp(socketserver.StreamRequestHandler):
    """As much of RFC 5321 as a client needs to hand over a mail, with STARTTLS and AUTH PLAIN."""
    mails, logins, tls = [], [], None

    def answer(self, line):
        self.wfile.write(line.encode() + b"\r\n")
        self.wfile.flush()

    def handle(self):
        mail, secure = {"to": []}, False
        self.answer("220 test")
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            word = line.split(" ")[0].upper()
            if word == "EHLO":
                more = ["AUTH PLAIN"] if secure else ["STARTTLS"] if Smtp.tls else []
                for i, text in enumerate(["test"] + more):
                    self.answer(f"250{'-' if i < len(more) else ' '}{text}")
            elif word == "STARTTLS":
                self.answer("220 go")
                try:
                    self.connection = Smtp.tls.wrap_socket(self.connection, server_side=True)
                except ssl.SSLError:
                    return  # it has refused our certificate
                self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")
                secure = True
            elif word == "AUTH":
                if line == "AUTH PLAIN":
                    self.answer("334 ")
                    line = self.rfile.readline().decode()
                Smtp.logins.append(line)
                self.answer("235 ok")
            elif word == "DATA":
                self.answer("354 go")
                lines = []
                while (data := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                    lines.append(data[1:] if data.startswith("..") else data)
                Smtp.mails.append(dict(mail, text="\n".join(lines), secure=secure))
                self.answer("250 taken")
            elif word == "QUIT":
                return self.answer("221 bye")
            else:
                if word == "MAIL":
                    mail["from"] = line[10:]
                if word == "RCPT":
                    mail["to"].append(line[8:])
                self.answer("250 ok")


def serve(kind, handler):
    server = kind(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, server.server_address[1]


web, web_port = serve(http.server.ThreadingHTTPServer, Hook)
smtp, smtp_port = serve(socketserver.ThreadingTCPServer, Smtp)


cloud = subprocess.Popen([sys.executable, os.path.dirname(os.path.abspath(__file__)) + "/../fault/fake_cloud.py", "1"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
cloud_url = f"http://127.0.0.1:{int(cloud.stdout.readline())}"
urllib.request.urlopen(urllib.request.Request(cloud_url + "/calm", b"{}", {"Content-Type": "application/json"}))
traits = dict(token_lifetime_ms=3_600_000, create_timeout_ms=1_200, visibility_lag_ms=250, dead_man="provider")
json.dump(dict(remote=dict(url=cloud_url, traits=traits)), open(root + "/remote.json", "w"))


class Home:
    number = 0

    def __init__(self, **more):
        Home.number += 1
        self.path = f"{root}/home{Home.number}"
        self.env = dict(os.environ, RILLE_HOME=self.path, XDG_CONFIG_HOME=root + "/config", NO_COLOR="1",
                        RILLE_PROVIDERS=root + "/remote.json", **more)

    def rille(self, *words):
        r = subprocess.run([rille, *words], env=self.env, capture_output=True, text=True, timeout=60, cwd=root)
        return r.returncode, r.stdout + r.stderr

    def run(self, source, name="script"):
        open(f"{root}/{name}.lua", "w").write('local rille = require "rille"\n' + source)
        return self.rille("run", f"{root}/{name}.lua")

    def journal(self, statement):
        db = sqlite3.connect(self.path + "/journal.db", timeout=20)
        with db:
            rows = db.execute(statement).fetchall()
        db.close()
        return rows

    def trail(self):
        return [e for e in json.loads(self.rille("audit", "--json")[1])["events"] if e["event"] == "warning"]


def spend(url, more=""):
    return f"""
rille.budget {{ limit = 0.60, alert = 0.7, alert_url = "{url}" }}
local box = rille.rent("box", {{ gpu = "cpu", provider = "remote", ttl = "10m" }})
{more}"""


try:
    home = Home()
    hook = f"http://127.0.0.1:{web_port}/hook?token=geheim"
    code, out = home.run(spend(hook))
    check("a web hook gets the alert, though the run ends right after it is due", code == 0 and len(Hook.got) == 1, out)
    told = Hook.got[0] if Hook.got else {}
    check("with all that is to be known", told.get("event") == "budget" and told.get("limit_micros") == 600_000 and
          "of the run's budget of $0.60" in told.get("message", "") and told.get("run") and told.get("id"), told)
    check("the run says so itself", "budget" in out and "$0.60" in out, out)
    check("the address' secret is told to nobody", "geheim" not in out + json.dumps(home.trail()), out)

    Hook.got.clear()
    home = Home()
    code, out = home.run(spend(hook, """box:release()
local two = rille.rent("two", { gpu = "cpu", provider = "remote", ttl = "10m" })
rille.step("die once", function()
  local f = io.open("%s/died"); if f then f:close() return end
  io.open("%s/died", "w"):close()
  os.execute("kill -9 $PPID")
end)
local three = rille.rent("three", { gpu = "cpu", provider = "remote", ttl = "10m", min_ttl = "1m" })""" % (root, root)))
    code, out = home.rille("resume", "last")
    check("an alert is sent once, also after a kill", code == 0 and len(Hook.got) == 1, (out, Hook.got))

    # --- an address that is a secret: by its name, and by mistake
    Hook.got.clear()
    secret = f"http://127.0.0.1:{web_port}/services/T0/geheim"
    home = Home(SLACK_URL=secret)
    code, out = home.run(spend("env:SLACK_URL"))
    check("an address that a variable says", code == 0 and len(Hook.got) == 1, (out, Hook.got))
    Hook.status = 404
    for words in (["budget", "set", "--month", "0.55", "--alert-url", "env:SLACK_URL"], ["budget"]):
        out += home.rille(*words)[1]
    out += home.run('local box = rille.rent("box", { gpu = "cpu", provider = "remote", ttl = "10m" })')[1]
    check("of the month's budget, too", len(Hook.got) == 2 and any("404" in w.get("message", "") and w.get("to") ==
          "env:SLACK_URL" for w in home.trail()), (Hook.got, home.trail()))
    left = [f for folder, _, names in os.walk(home.path) for f in (os.path.join(folder, n) for n in names)
            if b"geheim" in open(f, "rb").read()]
    check("is stored nowhere in the home, and sent to no other server", not left and "geheim" not in out +
          json.dumps(home.trail()), (left, out))
    home.env.pop("SLACK_URL")
    home.journal("UPDATE alerts SET next_us=0, created_us=0 WHERE told_us IS NULL")
    home.rille("gc")
    check("where it is not set, the trail says so", any("environment variable SLACK_URL, which is not set" in
          w.get("message", "") for w in home.trail()), home.trail())
    home = Home()
    code, out = home.run(spend(secret))
    check("a plain address is shown by its host alone", code == 0 and "geheim" not in out + json.dumps(home.trail()) and
          any(w.get("to") == f"http://127.0.0.1:{web_port}" for w in home.trail()), (out, home.trail()))
    Hook.status = 204

    # --- no server listens
    Hook.got.clear()
    Hook.status = 503
    home = Home()
    code, out = home.run(spend(hook))
    warnings = home.trail()
    check("a hook that fails is a warning and not the run's end", code == 0 and len(Hook.got) == 1 and
          any("could not be sent" in w.get("what", "") and "503" in w.get("message", "") for w in warnings),
          (code, out, warnings))
    Hook.status = 204
    home.rille("gc")
    check("and is not tried again before its time", len(Hook.got) == 1, Hook.got)
    home.journal("UPDATE alerts SET next_us=0")
    home.rille("gc")
    home.rille("gc")
    check("later the next command sends it, once, as the same alert",
          len(Hook.got) == 2 and Hook.got[0]["id"] == Hook.got[1]["id"], Hook.got)

    Hook.got.clear()
    Hook.status = 503
    home = Home()
    home.run(spend(hook))
    home.journal("UPDATE alerts SET next_us=0, created_us=0")
    home.rille("gc")
    home.journal("UPDATE alerts SET next_us=0")
    home.rille("gc")
    check("after a day it is given up, and that is reported", len(Hook.got) == 2 and
          any("given up" in w.get("what", "") for w in home.trail()), (Hook.got, home.trail()))
    Hook.status = 204

    # --- the watch
    Hook.got.clear()
    Hook.status = 503
    home = Home()
    home.run(spend(hook))
    Hook.status = 204
    home.journal("UPDATE alerts SET next_us=0")
    watch = subprocess.Popen([rille, "watch"], env=home.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for _ in range(200):
        if len(Hook.got) == 2:
            break
        threading.Event().wait(0.05)
    watch.send_signal(signal.SIGINT)
    watch.communicate(timeout=30)
    check("the watch tells what is due", len(Hook.got) == 2, Hook.got)

    # --- e-mail
    home = Home(RILLE_SMTP_URL=f"smtp://127.0.0.1:{smtp_port}", RILLE_SMTP_FROM="rille@example.org")
    code, out = home.run(spend("mailto:ann@example.org,bob@example.org"))
    mail = Smtp.mails[-1] if Smtp.mails else {}
    check("an alert by e-mail, to two", code == 0 and mail.get("from") == "<rille@example.org>" and
          mail.get("to") == ["<ann@example.org>", "<bob@example.org>"], (out, mail))
    head, _, body = mail.get("text", "").partition("\n\n")
    check("it is a proper mail", all(h in head for h in (
        "From: Rille <rille@example.org>", "To: ann@example.org, bob@example.org", "Subject: Rille: budget in run ",
        "Message-ID: <", "Date: ", "Content-Type: text/plain; charset=utf-8")), head)
    check("that says what happened", body.startswith("$0.4") and "limit_micros: 600000" in body, body)

    Smtp.mails.clear()
    code, out = home.rille("budget", "set", "--month", "0.55", "--alert-url", "mailto:cfo@example.org")
    code, out = home.run('local box = rille.rent("box", { gpu = "cpu", provider = "remote", ttl = "10m" })')
    check("this month's budget has its own address", code == 0 and Smtp.mails and
          Smtp.mails[0]["to"] == ["<cfo@example.org>"] and "this month's budget" in Smtp.mails[0]["text"], Smtp.mails)

    Smtp.mails.clear()
    home = Home()
    code, out = home.run(spend("mailto:ann@example.org"))
    check("without a mail server the trail says how to name one", code == 0 and
          any("RILLE_SMTP_URL" in w.get("hint", "") for w in home.trail()), home.trail())

    secret = Home(RILLE_SMTP_URL=f"smtp://user:geheim@127.0.0.1:{smtp_port}")
    code, out = secret.run(spend("mailto:ann@example.org"))
    check("a password never goes over a line in the clear", code == 0 and not Smtp.mails and not Smtp.logins and
          any("no TLS" in w.get("hint", "") for w in secret.trail()), (secret.trail(), Smtp.logins))
    check("and stands nowhere", "geheim" not in json.dumps(secret.trail()) + out, out)

    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", root + "/key.pem", "-out", root + "/cert.pem", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    Smtp.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    Smtp.tls.load_cert_chain(root + "/cert.pem", root + "/key.pem")
    strange = Home(RILLE_SMTP_URL=f"smtp://user:geheim@localhost:{smtp_port}")
    code, out = strange.run(spend("mailto:ann@example.org"))
    check("a certificate of an unknown authority is refused", code == 0 and not Smtp.mails and not Smtp.logins and
          any("certificate" in w.get("message", "") and w.get("to") == "mailto:ann@example.org"
              for w in strange.trail()), strange.trail())
    known = Home(RILLE_SMTP_URL=f"smtp://user:geheim@localhost:{smtp_port}", SSL_CERT_FILE=root + "/cert.pem")
    code, out = known.run(spend("mailto:ann@example.org"))
    check("a known one is spoken to, with the password", code == 0 and len(Smtp.mails) == 1 and Smtp.mails[0]["secure"]
          and len(Smtp.logins) == 1, (known.trail(), Smtp.mails))

    # --- mistakes
    for url, says in (("ann@example.org", "alerts cannot be sent to"), ("mailto:ann", "'ann' is not an e-mail address"),
                      ("ftp://example.org/x", "alerts cannot be sent to"), ("env:", "the name of an environment"),
                      ("mailto:a@b.org\\r\\nX: y", "is not an e-mail address")):
        code, out = Home().run(spend(url))
        check(f"alert_url = {url!r} is refused before anything is rented", code == 1 and says in out and
              "mailto:me@example.org" in out and "rented" not in out, out)
    code, out = Home().rille("budget", "set", "--month", "5", "--alert-url", "slack")
    check("and by the command", code == 2 and "alerts cannot be sent to" in out, (code, out))
finally:
    cloud.stdin.close()
    cloud.kill()
    cloud.wait()
    web.shutdown()
    smtp.shutdown()
    shutil.rmtree(root, ignore_errors=True)
finish()
