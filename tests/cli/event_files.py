"""TensorBoard's event files, read strictly: TFRecord with masked CRC-32C, Event and Summary as TensorBoard's protos
have them. Whatever else stands in them is a ValueError."""
import os, struct

TABLE = []
for i in range(256):
    for _ in range(8):
        i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
    TABLE.append(i)


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        size, crc = struct.unpack_from("<QI", data, at)
        body = data[at + 12:at + 12 + size]
        if crc != masked(data[at:at + 8]) or struct.unpack_from("<I", data, at + 12 + size)[0] != masked(body):
            raise ValueError(f"the checksum at {at}")
        yield body
        at += 16 + size


def fields(data):
    """(number, value) of each field: of a message without groups."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind, number = key & 7, key >> 3
        if kind == 0:
            yield number, varint()
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            yield number, data[at:at + size]
            at += size
        elif kind == 2:
            size = varint()
            if at + size > len(data):
                raise ValueError("a field goes on after the end")
            yield number, data[at:at + size]
            at += size
        else:
            raise ValueError(f"wire type {kind}")


def scalars(path):
    """{tag: [(wall_time, step, value), ..]}"""
    out, first = {}, True
    for record in records(open(path, "rb").read()):
        event = dict(fields(record))
        wall = struct.unpack("<d", event.pop(1))[0]
        if first:
            if event != {3: b"brain.Event:2"}:
                raise ValueError(f"the first record is {event}")
            first = False
            continue
        step = event.pop(2)
        (one, value), = fields(event.pop(5))
        value = dict(fields(value))
        if event or one != 1 or set(value) != {1, 2}:
            raise ValueError(f"more than a scalar: {event} {value}")
        out.setdefault(value[1].decode(), []).append((wall, step, struct.unpack("<f", value[2])[0]))
    return out


def below(folder):
    """{folder below it: scalars}, as TensorBoard shows runs."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            if ".tfevents." not in name:
                raise ValueError(f"{name} is no event file")
            found[os.path.relpath(at, folder)] = scalars(os.path.join(at, name))
    return found
