"""A throw-away RSA key from a seed, and its PKCS#8 text: what a service account's file holds. Python has neither."""
import base64, functools, os, random, tempfile, time

import signatures

SMALL = [p for p in range(3, 2000, 2) if all(p % q for q in range(3, int(p**0.5) + 1, 2))]
EXPONENT = 65537


def prime(dice, bits):
    while True:
        base = dice.getrandbits(bits) | 1 | 3 << (bits - 2)
        rests = [(base % p, p) for p in SMALL]
        for step in range(0, 4000, 2):
            n = base + step
            if all(
                (r + step) % p for r, p in rests) and pow(2, n - 1, n) == 1 == pow(3, n - 1, n) and (n - 1) % EXPONENT:
                return n


def der(tag, body):
    size = len(body)
    head = bytes([size]) if size < 128 else bytes([0x80 | (size.bit_length() + 7) // 8]) + size.to_bytes(
        (size.bit_length() + 7) // 8, "big")
    return bytes([tag]) + head + body


def integer(n):
    return der(2, n.to_bytes(n.bit_length() // 8 + 1, "big"))


@functools.lru_cache
def primes(seed, bits):
    """Two primes, the same for the same seed. They take a quarter of a second, and hundreds of fakes are started with
    the same few seeds: so they are kept in a folder of this user's."""
    folder = f"{tempfile.gettempdir()}/rille-fakes-{os.getuid()}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.lstat(folder).st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    path = f"{folder}/primes-{seed}-{bits}"
    try:
        with open(path) as kept:
            p, q = (int(line) for line in kept)
    except (FileNotFoundError, ValueError):
        dice = random.Random(f"rsa-{seed}")
        p, q = prime(dice, bits), prime(dice, bits)
        with open(f"{path}.{os.getpid()}", "w") as new:
            new.write(f"{p}\n{q}\n")
        os.replace(new.name, path)
    return p, q


class RsaKey:

    def __init__(self, seed, bits=2048):
        p, q = primes(seed, bits // 2)
        self.modulus, self.private = p * q, pow(EXPONENT, -1, (p - 1) * (q - 1))
        numbers = [
            0, self.modulus, EXPONENT, self.private, p, q, self.private % (p - 1), self.private % (q - 1),
            pow(q, -1, p)
        ]
        inner = der(0x30, b"".join(integer(n) for n in numbers))
        algorithm = der(0x30, der(6, bytes.fromhex("2a864886f70d010101")) + der(5, b""))
        text = base64.b64encode(der(0x30, integer(0) + algorithm + der(4, inner))).decode()
        lines = "\n".join(text[i:i + 64] for i in range(0, len(text), 64))
        self.pem = f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n"


def numbers_of(pem):
    """(modulus, private exponent) of such a text: for clients that sign."""
    data = base64.b64decode("".join(pem.strip().split("\n")[1:-1]))
    at = data.index(b"\x04", 20)

    def element(at):
        size, at = data[at + 1], at + 2
        if size & 0x80:
            count = size & 0x7f
            size, at = int.from_bytes(data[at:at + count], "big"), at + count
        return at, size

    start, _ = element(at)
    at, _ = element(start)
    found = []
    for _ in range(4):
        at, size = element(at)
        found.append(int.from_bytes(data[at:at + size], "big"))
        at += size
    return found[1], found[3]


def oid(text):
    return der(6, bytes.fromhex(text))


def self_signed(key, address, now):
    """PEM of an untrusted certificate for an IPv4 address, good for ten years around `now`."""
    sign = der(0x30, oid("2a864886f70d01010b") + der(5, b""))  # sha256WithRSAEncryption
    name = der(0x30, der(0x31, der(0x30, oid("550403") + der(12, b"A fake of Rille"))))
    times = [time.strftime("%y%m%d%H%M%SZ", time.gmtime(now + years * 31_536_000)).encode() for years in (-5, 5)]
    public = der(0x30, integer(key.modulus) + integer(EXPONENT))
    spki = der(0x30, der(0x30, oid("2a864886f70d010101") + der(5, b"")) + der(3, b"\0" + public))
    names = der(0x30, oid("551d11") + der(4, der(0x30, der(0x87, bytes(int(n) for n in address.split("."))))))
    authority = der(0x30, oid("551d13") + der(1, b"\xff") + der(4, der(0x30, der(1, b"\xff"))))
    told = der(
        0x30,
        der(0xa0, integer(2)) + integer(1) + sign + name + der(0x30, b"".join(der(23, t) for t in times)) + name +
        spki + der(0xa3, der(0x30, names + authority)))
    signature = signatures.rs256_sign(told, key.modulus, key.private)
    text = base64.b64encode(der(0x30, told + sign + der(3, b"\0" + signature))).decode()
    lines = "\n".join(text[i:i + 64] for i in range(0, len(text), 64))
    return f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"
