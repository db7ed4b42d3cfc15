#!/usr/bin/env python3
"""Device memory profiles of JAX: small ones made here, and what they become. Usage: pprof.py ALLOCRIG FOLDER"""
import os
import subprocess
import sys

PROGRAM, FOLDER = sys.argv[1:]
PATH = os.path.join(FOLDER, "0")
STRINGS = ["", "allocations", "count", "space", "bytes", "kind", "buffer", "executable", "device", "cuda:0", "cuda:3",
           "TFRT_CPU_1", "/x/train.py", "make", "/site-packages/jax/api.py", "jit"]


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number, value):
    """A number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def value_type(name, unit):
    return field(1, field(1, name) + field(2, unit))


ALLOCATIONS, SPACE = value_type(1, 2), value_type(3, 4)


def sample(location, count, size, device, packed=True):
    """`location` 0: none; `device` 0: an executable."""
    values = field(2, varint(count) + varint(size)) if packed else field(2, count) + field(2, size)
    label = field(3, field(1, 5) + field(2, 6 if device else 7))
    label += field(3, field(1, 8) + field(2, device)) if device else b""
    return field(2, (field(1, location) if location else b"") + values + label)


def frame(number, line, name, file):
    return (field(4, field(1, number) + field(4, field(1, number) + field(2, line))),
            field(5, field(1, number) + field(2, name) + field(4, file)))


# location 1 is train.py:12:make, location 2 is JAX's own
(PLACE, FUNCTION), (OTHER_PLACE, OTHER_FUNCTION) = frame(1, 12, 13, 12), frame(2, 99, 15, 14)
NAMES = b"".join(field(6, text.encode()) for text in STRINGS)
TABLES = PLACE + OTHER_PLACE + FUNCTION + OTHER_FUNCTION + NAMES


def convert(profile):
    """The events of a profile, and what is said of it."""
    with open(PATH, "wb") as file:
        file.write(profile)
    done = subprocess.run([PROGRAM, "convert", PATH, PATH + ".txt"], capture_output=True, text=True, check=False)
    if done.returncode:
        return None, done.stderr
    with open(PATH + ".txt", encoding="utf-8") as file:
        return file.read().splitlines()[2:], " ".join(done.stdout.split())


def becomes(name, profile, events, *said):
    got, report = convert(profile)
    good = got == ["# recorder: xla", *events] and all(part in report for part in said)
    print(f"ok {name}" if good else f"not ok {name}: {got} {report}")


def refused(name, profile, sentence):
    got, report = convert(profile)
    good = got is None and report.startswith(f"allocrig: {PATH}: ") and sentence in report
    print(f"ok {name}" if good else f"not ok {name}: {got} {report}")


MADE = "tag=train.py:12:make"
becomes("two_gpus", ALLOCATIONS + SPACE + sample(1, 2, 8192, 9) + sample(2, 1, 100, 10, packed=False) + sample(0, 1, 7, 9) +
        sample(1, 3, 600, 0) + sample(1, 4, 400, 11) + TABLES,  # executables, and of the host
        [f"a,0,4096,{MADE},initial=yes", f"a,1,4096,{MADE},initial=yes", "a,2,100,tag=api.py:99:jit,device=3,initial=yes",
         "a,3,7,initial=yes"], "records 5 ", "code of 3 executables, 600 bytes: left out", "4 buffers of the host are left out")
becomes("the_host_and_types_in_the_other_order", SPACE + ALLOCATIONS + sample(1, 64, 2, 11) +
        sample(0, 2**64 - 3, 3, 0) + TABLES,  # three executables of -1 bytes
        [f"a,{i},32,{MADE},device=1,initial=yes" for i in range(2)],
        "code of 3 executables, of unknown size: left out", "2 buffers of the host are taken for device memory")
becomes("strings_first", NAMES + PLACE + OTHER_PLACE + FUNCTION + OTHER_FUNCTION + sample(1, 1, 64, 10, packed=False) +
        ALLOCATIONS + SPACE, [f"a,0,64,{MADE},device=3,initial=yes"])

refused("another_program", field(9, 1700000000000000000) + value_type(5, 6) + SPACE + sample(1, 2, 8192, 9) + TABLES,
        'a pprof profile of "kind, space", and not JAX\'s')  # Go writes the time first
refused("a_part_of_a_buffer", ALLOCATIONS + SPACE + sample(1, 3, 8192, 9) + TABLES,
        "a sample of 3 buffers with 8192 bytes, which are not of")
refused("too_many_buffers", ALLOCATIONS + SPACE + sample(1, 1 << 40, 0, 9) + TABLES, "the profile has more than 4194304 buffers")
refused("no_buffers", ALLOCATIONS + SPACE + sample(1, 2, 64, 0) + TABLES, "the profile has no buffers")
CUT_LABEL = field(3, b"\x08\xff")
for case, before in ("", b""), ("_of_a_whole_sample", field(2, 1) + field(2, 64)):
    refused("a_label_that_ends_within_a_number" + case,
            ALLOCATIONS + SPACE + field(2, before + CUT_LABEL) + sample(1, 2, 8192, 9) + TABLES,
            "the profile is damaged or cut off")

for case, cut in ("", b"\x08\xff"), ("_of_its_line", field(4, b"\x08\xff")):
    refused("a_location_that_ends_within_a_number" + case,
            ALLOCATIONS + SPACE + sample(1, 2, 8192, 9) + field(4, field(1, 3) + cut) + TABLES,
            "the profile is damaged or cut off")

# Each shorter file is refused, or is a smaller profile where a field ends.
WHOLE = ALLOCATIONS + SPACE + sample(1, 2, 8192, 9) + TABLES
taken = 0
for count in range(0, len(WHOLE)):
    events, said = convert(WHOLE[:count])
    taken += events is not None
    if events is None and not said.startswith(f"allocrig: {PATH}: "):
        taken = 100
print("ok cut_profiles" if taken < 16 else f"not ok cut_profiles: {taken}")
