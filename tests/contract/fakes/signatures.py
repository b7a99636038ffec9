"""The providers' request signatures, from their published formulas. The fakes verify with these and the clients of the
tests sign with them; known answers of the providers hold them in self_test.py. Nothing here knows Rille's own signers.

Headers are pairs (name, value) as received. Each function gives (SHA-256 of the canonical request, signature).
"""
import base64, hashlib, hmac, re, urllib.parse


def sha256(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


def mac(key, text, kind="sha256"):
    return hmac.new(key if isinstance(key, bytes) else key.encode(), text.encode(), kind).digest()


def quote(text, safe=""):
    return urllib.parse.quote(text, safe="-_.~" + safe)


def pairs_of(raw_query):
    """Decoded pairs of a query string as it came; '+' is a plus here, not a space."""
    parts = [p.partition("=") for p in raw_query.split("&") if p]
    return [(urllib.parse.unquote(k), urllib.parse.unquote(v)) for k, _, v in parts]


def canonical_query(pairs):
    return "&".join(f"{k}={v}" for k, v in sorted((quote(str(k)), quote(str(v))) for k, v in pairs))


def query_in_order(pairs):
    """Alibaba's RPC and Huawei sort before they encode."""
    return "&".join(f"{quote(str(k))}={quote(str(v))}" for k, v in sorted(pairs))


def canonical_headers(headers, signed, join=","):
    lines = []
    for name in signed:
        values = [re.sub(" +", " ", v.strip()) for k, v in headers if k.lower() == name]
        lines.append(f"{name}:{join.join(values)}\n")
    return "".join(lines)


def slashes_removed(path):
    out = []
    for part in path.split("/"):
        if part == ".." and out:
            out.pop()
        elif part not in ("", ".", ".."):
            out.append(part)
    return "/" + "/".join(out) + ("/" if path.endswith("/") and out else "")


def sigv4(method, path, query, headers, signed, payload_hash, amz_date, region, service, secret):
    """AWS; `path` as on the wire. Outside S3 it is normalised and encoded once more."""
    uri = path or "/" if service == "s3" else quote(slashes_removed(path), "/")
    request = "\n".join([
        method, uri,
        canonical_query(pairs_of(query)),
        canonical_headers(headers, signed), ";".join(signed), payload_hash
    ])
    scope = f"{amz_date[:8]}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", amz_date, scope, sha256(request)])
    key = sigv4_key(secret, amz_date[:8], region, service)
    return sha256(request), mac(key, text).hex()


def sigv4_key(secret, date, region, service):
    return mac(mac(mac(mac("AWS4" + secret, date), region), service), "aws4_request")


def alibaba_rpc(method, pairs, secret):
    """Signature version 1.0, over query and form together; there is no canonical request to hash."""
    text = f"{method}&%2F&" + quote(query_in_order([(k, v) for k, v in pairs if k != "Signature"]))
    return text, base64.b64encode(mac(secret + "&", text, "sha1")).decode()


def alibaba_acs3(method, path, query, headers, signed, payload_hash, secret):
    """In the query a plus is a space: Alibaba's own SDK sends it so, and signs %20."""
    joined, query = [], query.replace("+", "%20")
    for name in signed:
        values = sorted(v.strip() for k, v in headers if k.lower() == name)
        joined.append(f"{name}:{','.join(values)}\n")
    request = "\n".join(
        [method, path, canonical_query(pairs_of(query)), "".join(joined), ";".join(signed), payload_hash])
    return sha256(request), mac(secret, "ACS3-HMAC-SHA256\n" + sha256(request)).hex()


def tencent_tc3(method, query, headers, signed, payload_hash, timestamp, date, service, secret):
    """Values of headers are lower-cased, too. The query of a GET is taken as it is."""
    lines = "".join(f"{n}:{next((v for k, v in headers if k.lower() == n), '').strip().lower()}\n" for n in signed)
    request = "\n".join([method, "/", query, lines, ";".join(signed), payload_hash])
    text = f"TC3-HMAC-SHA256\n{timestamp}\n{date}/{service}/tc3_request\n{sha256(request)}"
    key = mac(mac(mac("TC3" + secret, date), service), "tc3_request")
    return sha256(request), mac(key, text).hex()


def huawei(method, path, query, headers, signed, payload_hash, date, secret, id="", scope=""):
    """With a scope (day/region/service) it is V11, whose key is derived by HKDF, salted with the id."""
    uri = quote(urllib.parse.unquote(path), "/")
    lines = "".join(f"{n}:{next((v for k, v in headers if k.lower() == n), '').strip()}\n" for n in signed)
    request = "\n".join([
        method, uri if uri.endswith("/") else uri + "/",
        query_in_order(pairs_of(query)), lines, ";".join(signed), payload_hash
    ])
    if scope:
        key = mac(mac(id, secret), scope + "\1").hex()
        return sha256(request), mac(key, f"V11-HMAC-SHA256\n{date}\n{scope}\n{sha256(request)}").hex()
    return sha256(request), mac(secret, f"SDK-HMAC-SHA256\n{date}\n{sha256(request)}").hex()


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unbase64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


SHA256_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")


def pkcs1_block(message, size):
    """RSASSA-PKCS1-v1_5 (RFC 8017): what is raised to the key's power."""
    tail = SHA256_PREFIX + hashlib.sha256(message).digest()
    return b"\0\1" + b"\xff" * (size - len(tail) - 3) + b"\0" + tail


def rs256_verify(message, signature, modulus, exponent):
    size = (modulus.bit_length() + 7) // 8
    plain = pow(int.from_bytes(signature, "big"), exponent, modulus).to_bytes(size, "big")
    return len(signature) == size and hmac.compare_digest(plain, pkcs1_block(message, size))


def rs256_sign(message, modulus, private):
    size = (modulus.bit_length() + 7) // 8
    return pow(int.from_bytes(pkcs1_block(message, size), "big"), private, modulus).to_bytes(size, "big")
