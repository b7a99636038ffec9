"""Keys that a provider lends for a while: to who has a role, and to the machine that its user works on.

A fake that has such tells its `ways`, for keys_test.py: a name, the variables (`env`), the files below the user's home
(`files`), the `settings` and their `endpoints` that are different, and what the doctor shall say of where the keys were
found (`found`); `{home}` in them stands for that home. `token`: the file with a token that others renew, if there is
one.
"""
import json

from message import Reply

TOKEN = "token"


def way(name, found, env=None, files=None, token=None, settings=None, **endpoints):
    return dict(name=name, found=found, env=env or {}, files=files or {}, token=token, settings=settings or {},
                endpoints=endpoints)


def wrong(name, kind, says, hint, env=None, files=None, **endpoints):
    return dict(way(name, "", env, files, **endpoints), kind=kind, says=says, hint=hint)


def as_json(**values):
    return json.dumps(values)


class Lending:
    """For clouds with an id, a secret and a session token."""
    SESSION_PATH = SESSION_LIFETIME = SESSION_HEADER = ROLES = ""
    ROLE = "rille-role"
    SESSION_NEEDED = False

    def prepare_lending(self):
        word = self.world.word
        self.identity_token = ".".join(["eyJhbGciOiJSUzI1NiJ9", word(120), word(80)])
        self.host_session = ""
        self.lent.append(self.identity_token)

    def lend(self, by):
        """(id, secret, session token, end) of new keys, which this fake then takes."""
        word, n = self.world.word, len(self.loans)
        id, secret, session = f"{self.key2[:4]}{n:02}{word(16)}", word(40), word(200)
        self.keys[id] = (secret, session)
        self.lent += [secret, session]
        self.loans.append(by)
        return id, secret, session, self.world.wall() + self.key_lifetime

    def lent_document(self, by):
        """The keys as this provider's documents call them."""
        raise NotImplementedError

    def host_metadata(self, request, path):
        if path == self.SESSION_PATH:
            if request.method != "PUT" or not request.header(self.SESSION_LIFETIME).isdigit():
                return Reply(400, "", "text/plain")
            self.host_session = self.world.word(40)
            return Reply(200, self.host_session, "text/plain")
        if self.SESSION_HEADER:
            given = request.header(self.SESSION_HEADER)
            if (self.SESSION_NEEDED and not given) or (given and given != self.host_session):
                return Reply(401, "", "text/plain")
        if path == self.ROLES and self.ROLES.endswith("/"):
            return Reply(200, self.ROLE, "text/plain")
        if path in [self.ROLES + role for role in (self.ROLE, "other")] or path == self.ROLES:
            return Reply(200, self.lent_document("machine"))
        return Reply(404, "", "text/plain")

    def at_host(self):
        return self.url + "/_metadata/host"
