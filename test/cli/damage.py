# SPDX-License-Identifier: Apache-2.0
"""damage.py - changes model files of ours and makes their checksums right again."""
import struct


def crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


CRC_TABLE = crc_table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for b in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ b) & 255]
    return crc ^ 0xFFFFFFFF


def sections(data):
    """Place in the table, offset and bytes of each section of a v3 file, by its id."""
    found = {}
    for at in range(64, 64 + 5 * 32, 32):
        offset, n = struct.unpack_from("<QQ", data, at + 8)
        found[bytes(data[at:at + 4]).decode("latin-1")] = (at, offset, n)
    return found


def repair(data):
    """Makes the checksums of a changed v3 header, META, TNSR and CHNK right again, as far as the
    table still says where they are: whoever damages a file on purpose can do that, too."""
    data = bytearray(data)
    for name, (_, offset, n) in sections(data).items():
        if name in ("META", "TNSR", "CHNK") and 4 <= n and offset + n <= len(data):
            struct.pack_into("<I", data, offset + n - 4, crc32c(data[offset:offset + n - 4]))
    header = struct.unpack_from("<I", data, 12)[0]
    if 64 <= header <= len(data):
        struct.pack_into("<I", data, 60, crc32c(data[64:header], crc32c(data[:60])))
    return bytes(data)


def with_json(data, change):
    """A v3 or v2 file whose JSON is the text that change makes of it, all lengths adjusted."""
    if data[:4] == b"TGPT" and data[4:5] != b"3":
        n = struct.unpack_from("<I", data, 8)[0]
        text = change(data[12:12 + n])
        return data[:8] + struct.pack("<I", len(text)) + text + data[12 + n:]
    table = sections(data)
    _, offset, n = table["META"]
    text = change(data[offset:offset + n - 4]) + b"\0" * 4
    room = (n + 63) // 64 * 64
    new_room = (len(text) + 63) // 64 * 64
    out = bytearray(data[:offset] + text + b"\0" * (new_room - len(text)) + data[offset + room:])
    struct.pack_into("<Q", out, table["META"][0] + 16, len(text))
    for name, (at, old, _) in table.items():
        if old > offset:
            struct.pack_into("<Q", out, at + 8, old + new_room - room)
    struct.pack_into("<Q", out, 32, len(out))
    return repair(out)


def swap(a, b):
    def change(text):
        if a not in text:
            raise ValueError(f"{a} is not in the header")
        return text.replace(a, b, 1)
    return change
