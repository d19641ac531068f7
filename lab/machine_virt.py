"""Lets a guest of the emulated machine run under the AMD virtualization that QEMU emulates.

A nested firmware (OVMF) writes CR8 while an interrupt of its own is pending; QEMU's helper for that raises the interrupt without
the lock that tcg_handle_interrupt() asserts, and QEMU 6.2 to 10.0 at least dies of it. Linux as the nested guest never does
that. So the machine's QEMU gets a copy of its own TCG module in which that one assertion never fails; the system's is untouched.
"""

import glob
import os
import struct

SYMBOL = b"tcg_handle_interrupt"
CHECK = b"\x84\xc0\x75"  # test al,al; jne past the assertion
JUMP = b"\x84\xc0\xeb"   # test al,al; jmp past it
MODULES = "/usr/lib/*/qemu/accel-tcg-x86_64.so"


def sections(image):
    """(type, offset, size, link) of each section of a 64-bit ELF file."""
    table, = struct.unpack_from("<Q", image, 0x28)
    entry, count = struct.unpack_from("<HH", image, 0x3A)
    for index in range(count):
        kind, = struct.unpack_from("<I", image, table + index * entry + 4)
        offset, size = struct.unpack_from("<QQ", image, table + index * entry + 24)
        link, = struct.unpack_from("<I", image, table + index * entry + 40)
        yield kind, offset, size, link


def file_offset(image, address):
    """Where in the file the byte lies that is loaded at the address; None for none."""
    table, = struct.unpack_from("<Q", image, 0x20)
    entry, count = struct.unpack_from("<HH", image, 0x36)
    for index in range(count):
        kind, _, offset, start, _, size = struct.unpack_from("<IIQQQQ", image, table + index * entry)
        if kind == 1 and start <= address < start + size:
            return offset + address - start
    return None


def function(image, name):
    """The file offset of an exported function; None for none."""
    rows = list(sections(image))
    for kind, offset, size, link in rows:
        if kind != 11:  # the dynamic symbols
            continue
        names = rows[link][1]
        for at in range(offset, offset + size, 24):
            where, _, _, _, address = struct.unpack_from("<IBBHQ", image, at)
            if address and image[names + where:image.index(b"\0", names + where)] == name:
                return file_offset(image, address)
    return None


def lay_module(directory):
    """Writes the changed module into the directory. False where this QEMU has none, or one that looks different."""
    for path in glob.glob(MODULES):
        with open(path, "rb") as source:
            image = source.read()
        start = function(image, SYMBOL)
        found = image.find(CHECK, start, start + 64) if start else -1
        if found >= 0:
            os.makedirs(directory, exist_ok=True)
            with open(os.path.join(directory, os.path.basename(path)), "wb") as out:
                out.write(image[:found] + JUMP + image[found + len(CHECK):])
            return True
    return False
