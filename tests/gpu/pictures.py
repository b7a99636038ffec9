"""Pictures as workflows/raytrace.lua writes them, and a small one that the CPU drew, to hold a large one against."""
import struct
import zlib
from pathlib import Path


def png(path):
    """Width, height and the rows (one byte, then red, green, blue of each pixel) of a picture without interlacing and
    filters; every checksum is checked."""
    data = Path(path).read_bytes()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError(f"{path} is no PNG")
    at, parts = 8, {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if data[at + 8 + size:at + 12 + size] != struct.pack(">I", zlib.crc32(kind + body)):
            raise ValueError(f"{path}: a wrong checksum of {kind.decode()}")
        parts[kind] = body
        at += 12 + size
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    return width, height, zlib.decompress(parts[b"IDAT"])


def png_bytes(rows):
    """A PNG of rows of (red, green, blue)."""
    def part(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    body = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in rows)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(body)) + part(b"IEND", b"")


def ppm(path):
    """Width, height and the bytes of a binary PPM (P6) without comments."""
    kind, width, height, most, pixels = Path(path).read_bytes().split(maxsplit=4)
    if (kind, most) != (b"P6", b"255"):
        raise ValueError(f"{path} is no PPM")
    return int(width), int(height), pixels[:3 * int(width) * int(height)]


def shrunk(path, width, height):
    """The means of a PNG's pixels in width x height equal blocks, as floats, channel by channel of each block."""
    wide, high, rows = png(path)
    if wide % width or high % height:
        raise ValueError(f"{path}: {wide} x {high} is no multiple of {width} x {height}")
    across, down = wide // width, high // height
    sums = [0] * (3 * width * height)
    for y in range(high):
        row = rows[y * (3 * wide + 1) + 1:(y + 1) * (3 * wide + 1)]
        first = y // down * width * 3
        for channel in range(3):
            one = row[channel::3]
            for x in range(width):
                sums[first + 3 * x + channel] += sum(one[x * across:(x + 1) * across])
    return [value / (across * down) for value in sums]


def difference(path, wanted):
    """The mean difference, of 255, of a PNG to a smaller PPM of the same scene."""
    width, height, pixels = ppm(wanted)
    return sum(abs(a - b) for a, b in zip(shrunk(path, width, height), pixels)) / len(pixels)
