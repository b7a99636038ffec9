"""As much of GraphQL as clients of RunPod send: one operation with variables, arguments, aliases, nested selections."""
import json, re

TOKEN = re.compile(r'[\s,]*(?:#[^\n]*\n[\s,]*)*("""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|'
                   r'[A-Za-z_]\w*|\.\.\.|[{}()\[\]:$!=@|])')


class QueryError(ValueError):
    pass


class Parser:

    def __init__(self, text, variables):
        self.tokens, self.at, self.variables, end = [], 0, variables or {}, 0
        text = text.rstrip() + " "
        while text[end:].strip(" \t\r\n,"):
            found = TOKEN.match(text, end)
            if not found:
                raise QueryError(f"Syntax Error: Unexpected character: {text[end:end + 10].strip()!r}.")
            self.tokens.append(found.group(1))
            end = found.end()

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self, wanted=None):
        token = self.peek()
        if not token or (wanted and token != wanted):
            raise QueryError(f'Syntax Error: Expected "{wanted or "a token"}", found "{token or "<EOF>"}".')
        self.at += 1
        return token

    def operation(self):
        """(kind, selections); a selection is (alias, name, arguments, selections)."""
        kind = "query"
        if self.peek() in ("query", "mutation"):
            kind = self.next()
            if re.match(r"[A-Za-z_]", self.peek()):
                self.next()
            if self.peek() == "(":
                self.declarations()
        selections = self.selections()
        if self.peek():
            raise QueryError(f'Syntax Error: Unexpected "{self.peek()}".')
        return kind, selections

    def declarations(self):
        self.next("(")
        while self.peek() != ")":
            self.next("$")
            name = self.next()
            self.next(":")
            while self.peek() not in ("$", ")", "="):
                self.next()
            if self.peek() == "=":
                self.next()
                self.variables.setdefault(name, self.value())
        self.next(")")

    def selections(self):
        self.next("{")
        found = []
        while self.peek() != "}":
            alias = name = self.next()
            if self.peek() == ":":
                self.next()
                name = self.next()
            arguments = self.object("(", ")") if self.peek() == "(" else {}
            found.append((alias, name, arguments, self.selections() if self.peek() == "{" else []))
        self.next("}")
        return found

    def object(self, opening, closing):
        self.next(opening)
        found = {}
        while self.peek() != closing:
            name = self.next()
            self.next(":")
            found[name] = self.value()
        self.next(closing)
        return found

    def value(self):
        token = self.peek()
        if token == "{":
            return self.object("{", "}")
        if token == "[":
            self.next()
            items = []
            while self.peek() != "]":
                items.append(self.value())
            self.next()
            return items
        self.next()
        if token == "$":
            return self.variables.get(self.next())
        if token.startswith('"""'):
            return token[3:-3]
        if token.startswith('"'):
            return json.loads(token)
        if re.match(r"-?\d", token):
            return float(token) if re.search(r"[.eE]", token) else int(token)
        return {"true": True, "false": False, "null": None}.get(token, token)  # else a name of an enumeration


def select(value, selections, kind):
    """Of a value the fields that were asked for; a field that it has not is an error, as GraphQL wants it."""
    if isinstance(value, list):
        return [select(v, selections, kind) for v in value]
    if not selections or value is None:
        return value
    found = {}
    for alias, name, arguments, below in selections:
        if name == "__typename":
            found[alias] = kind
            continue
        if name not in value:
            raise QueryError(f'Cannot query field "{name}" on type "{kind}".')
        part = value[name](arguments) if callable(value[name]) else value[name]
        if isinstance(part, (dict, list)) and not below and part and not isinstance(part, list):
            raise QueryError(f'Field "{name}" must have a selection of subfields.')
        found[alias] = select(part, below, name[:1].upper() + name[1:])
    return found
