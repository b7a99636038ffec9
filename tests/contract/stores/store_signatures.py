"""The signatures of object stores, from their published formulas (../fakes/signatures.py has those that APIs share).
Nothing here knows Rille's own signers. Each function gives the signature that a request should bear."""
import base64, hashlib, hmac, urllib.parse

import signatures
from signatures import mac, quote, sha256


def one(headers, name):
    return next((v.strip() for k, v in headers if k.lower() == name), "")


def bare_query(pairs):
    """OSS writes a key that has no value, or an empty one, without "="."""
    texts = sorted((quote(k), quote(v or "")) for k, v in pairs)
    return "&".join(f"{k}={v}" if v else k for k, v in texts)


def pairs_of(raw):
    """Decoded pairs in their order; the value of a bare key is None."""
    parts = [p.partition("=") for p in raw.split("&") if p]
    return [(urllib.parse.unquote(k), urllib.parse.unquote(v) if e else None) for k, e, v in parts]


def oss4(method, path, query, headers, also, date, region, secret):
    """`path` with the bucket in front; `query` without the signature."""
    names = sorted({k.lower() for k, _ in headers})
    signed = [n for n in names if n in ("content-type", "content-md5") or n.startswith("x-oss-") or n in also]
    lines = "".join(f"{n}:{one(headers, n)}\n" for n in signed)
    request = "\n".join([method, quote(urllib.parse.unquote(path), "/"), bare_query(query), lines,
                         ";".join(sorted(also)), "UNSIGNED-PAYLOAD"])
    text = f"OSS4-HMAC-SHA256\n{date}\n{date[:8]}/{region}/oss/aliyun_v4_request\n{sha256(request)}"
    key = "aliyun_v4" + secret
    for word in (date[:8], region, "oss", "aliyun_v4_request"):
        key = mac(key, word)
    return mac(key, text).hex()


def cos(method, path, query, headers, header_list, query_list, time, secret):
    def joined(pairs):
        return "&".join(f"{k}={v}" for k, v in sorted((quote(k).lower(), quote(v)) for k, v in pairs))

    asked = joined([(k, v or "") for k, v in query if quote(k).lower() in query_list])
    sent = joined([(n, one(headers, n)) for n in header_list])
    text = f"{method.lower()}\n{urllib.parse.unquote(path)}\n{asked}\n{sent}\n"
    key = mac(secret, time, "sha1").hex()
    return mac(key, f"sha1\n{time}\n{hashlib.sha1(text.encode()).hexdigest()}\n", "sha1").hex()


def azure_key(method, path, query, headers, account, secret, length):
    """SharedKey. `query`: decoded pairs."""
    text = [method] + [one(headers, n) for n in ("content-encoding", "content-language")]
    text += [str(length) if length else ""]
    text += [one(headers, n) for n in ("content-md5", "content-type")] + [""]
    text += [one(headers, n) for n in ("if-modified-since", "if-match", "if-none-match", "if-unmodified-since")]
    text += [one(headers, "range")]
    own = sorted({k.lower() for k, _ in headers if k.lower().startswith("x-ms-")})
    lines = "".join(f"{n}:{one(headers, n)}\n" for n in own)
    resource = f"/{account}{path}" + "".join(f"\n{k.lower()}:{v or ''}" for k, v in sorted(query))
    return base64.b64encode(hmac.new(base64.b64decode(secret), ("\n".join(text) + "\n" + lines + resource).encode(),
                                     "sha256").digest()).decode()


def azure_sas(sas, resource, secret, lent):
    """Of the fields of a SAS for one blob, of version 2020-12-06 to 2025-05; `lent`: with a user delegation key."""
    get = sas.get
    fields = [get("sp", ""), get("st", ""), get("se", ""), resource]
    if lent:
        fields += [get(n, "") for n in ("skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid")]
    else:
        fields += [get("si", "")]
    fields += [get(n, "") for n in ("sip", "spr", "sv", "sr", "snapshot", "ses")]
    fields += [get(n, "") for n in ("rscc", "rscd", "rsce", "rscl", "rsct")]
    return base64.b64encode(hmac.new(base64.b64decode(secret), "\n".join(fields).encode(), "sha256").digest()).decode()


def google4_text(method, path, query, headers, signed, date):
    """What the account's key signs; `query` without the signature."""
    lines = signatures.canonical_headers(headers, signed)
    request = "\n".join([method, path, signatures.canonical_query([(k, v or "") for k, v in query]), lines,
                         ";".join(signed), "UNSIGNED-PAYLOAD"])
    return f"GOOG4-RSA-SHA256\n{date}\n{date[:8]}/auto/storage/goog4_request\n{sha256(request)}"
