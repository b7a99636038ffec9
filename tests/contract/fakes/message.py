"""What goes in and out of a fake: requests, replies, and refusals in the provider's words."""
import base64, json, urllib.parse


class Refusal(Exception):
    """An error as the provider says it. `more` is what only one provider's error has."""

    def __init__(self, status, code, message="", headers=None, **more):
        super().__init__(code)
        self.status, self.code, self.message, self.headers, self.more = status, code, message, headers or {}, more


class Reply:

    def __init__(self, status, body=b"", type="application/json", headers=None):
        self.status, self.type, self.headers = status, type, dict(headers or {})
        self.body = json.dumps(body).encode() if isinstance(body, (dict, list)) else \
            body.encode() if isinstance(body, str) else body


class Request:

    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.path, _, self.raw_query = target.partition("?")
        self.query = urllib.parse.parse_qsl(self.raw_query, keep_blank_values=True)

    def header(self, name, default=""):
        return self.headers.get(name, default)

    def arg(self, name, default=None):
        return next((v for k, v in self.query if k == name), default)

    def form(self):
        return urllib.parse.parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True)

    def json(self):
        """The object in the body; None where it holds none."""
        try:
            value = json.loads(self.body) if self.body else {}
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


def unbase64(text):
    """The bytes, or None where it is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError):
        return None
