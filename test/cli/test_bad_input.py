#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_bad_input.py - wrong arguments, wrong texts, and model files damaged in every way.

For each of them: exit code 2 after less than a second of work, a message that says what, where,
wanted and found, no signal, and nothing written. Tables hold one case a line; what is expected of
all is in util.refused().
"""
import os
import random
import resource
import struct
import zlib

from damage import repair, sections, swap, with_json
from util import (SILENT, TINY, check, equal, expect, main, read, refused, resume, run, same_run,
                  text_file, tinygpt, train, whole, write)

# A forecast measures the machine for a moment: on two threads that is little work everywhere.
SMALL = (*TINY, *SILENT, "--threads", "2")

# --------------------------------------------------------------------------------------- arguments


NUMBERS = ("", " ", "12abc", "abc", "1e3", "0x10", "+5", " 5", "5 ", "1.5", "--",
           "99999999999999999999",
           "-99999999999999999999", "1" * 5000, "٣", "nan", "inf", "1_000", "1,000", "5\n", "-0x1")
REALS = ("", "nan", "inf", "-inf", "NaN", "Infinity", "0x1p3", "1e999", "-1", "12abc", "1,5", ".",
         "e5",
         "1e", "--1", "1e-3x", " 1", "1 ", "1" * 5000)
BOUNDS = {"--layers": ("-1", "0", "257"), "--width": ("-1", "0", "16385"),
          "--heads": ("-1", "0", "16385"),
          "--ctx": ("-1", "0", "65537"), "--batch": ("-1", "0", "65537"), "--accum": ("-1", "0"),
          "--steps": ("-1", "0", "10000000000"), "--warmup": ("-1",), "--save-every": ("-1",),
          "--eval-every": ("-1",), "--patience": ("-1",), "--threads": ("-1", "0", "257")}
REAL_BOUNDS = {"--lr": ("0", "-0", "11", "1e300"), "--clip": ("-0.1",),
               "--val": ("-0.1", "0.95", "1"),
               "--weight-decay": ("-1",), "--min-lr": ("1.1",), "--decay": ("1.01",)}


def bad_numbers():
    """Numbers are read to their last character and held to the range that is stated."""
    new = ("train", "--data", text_file(), *SILENT, "--no-save")
    for value in NUMBERS:
        refused(f"--steps {value[:20]!r}", *new, "--steps", value, err="--steps: want a")
    for option, values in BOUNDS.items():
        for value in values:
            refused(f"{option} {value}", *new, option, value, err=(f"{option}: want a whole number",
                                                                  value))
        refused(f"{option}=12abc", *new, f"{option}=12abc", err=(option, '"12abc"'))
    for value in REALS:
        refused(f"--lr {value[:20]!r}", *new, "--lr", value, err="--lr: want a")
    for option, values in REAL_BOUNDS.items():
        for value in (*values, "nan", "inf"):
            refused(f"{option} {value}", *new, option, value,
                    err=(f"{option}: want a number", value))
    for value in ("-1", "18446744073709551616", "1.0", "abc", ""):
        refused(f"--seed {value}", *new, "--seed", value, err="--seed: want")
    for value in ("", "linear", "Cosine", "cosine ", "c"):
        refused(f"--schedule {value}", *new, "--schedule", value, err="constant|cosine|wsd")
    expect(train("--no-save", "--steps", "1", "--seed", "18446744073709551615"), 0,
           "the largest seed")
    write("m", "x")
    for option, value in (("--tokens", "-1"), ("--temp", "-1"), ("--temp", "nan"),
                          ("--top-k", "-1"),
                          ("--top-p", "0"), ("--top-p", "1.1"), ("--min-p", "-0.1"), ("--ctx", "0"),
                          ("--repeat-penalty", "0"), ("--repeat-last", "-1"), ("--seed", "x")):
        refused(f"sample {option} {value}", "sample", "m", option, value, err=f"{option}: want")


def sizes_that_do_not_fit():
    new = ("train", "--data", text_file(), *SILENT, "--no-save", "--steps", "1", "--threads", "2")
    refused("heads do not divide", *new, "--width", "16", "--heads", "3",
            err=("--heads", "16", "3"))
    refused("more heads than width", *new, "--width", "4", "--heads", "8", err="--heads")
    refused("heads do not divide the preset's", *new, "--heads", "7", err=("96", "7"))
    refused("an unknown preset", *new, "--preset", "smal", err=("small", '"smal"'))
    # A forecast makes plans and measures the machine's peak, which takes a moment of its own.
    for what, args, err in (
            ("the largest model", ("--layers", "256", "--width", "16384", "--heads", "1"), "want"),
            ("a batch larger than memory", ("--preset", "behemoth", "--batch", "65536"),
             ("of memory for this run", "free")),
            ("attention larger than memory", ("--layers", "1", "--width", "16", "--heads", "16",
                                              "--ctx", "65536", "--batch", "65536"), "want")):
        refused(what, *new, *args, err=err, quick_s=5)
    refused("warm-up longer than the run", *new, "--warmup", "5", err=("warmup", "5"))


def bad_options():
    """Usage errors: exit 2, the option's name, and the one that was meant if it is near."""
    new = ("train", "--data", text_file(), "--no-save")
    for what, args, err in (
            ("an unknown option", (*new, "--setps", "5"), ("--setps", "--steps")),
            ("an unknown short option", (*new, "-x"), "-x"),
            ("an option twice", (*new, "--steps", "5", "--steps", "6"), ("--steps", "twice")),
            ("a flag twice", (*new, "--quiet", "--quiet"), ("--quiet", "twice")),
            ("a flag with a value", (*new, "--quiet=yes"), ("--quiet", "value")),
            ("a missing value", (*new, "--steps"), ("--steps", "none")),
            ("an option where a value should be", (*new, "--steps", "--quiet"),
             ("--steps", "none")),
            ("an argument too many", (*new, "extra"), "extra"),
            ("no text", ("train",), "--data"),
            ("no such text", ("train", "--data", "none.txt"), "none.txt"),
            ("an empty name", ("train", "--data", ""), "--data"),
            ("an unknown command", ("trian",), ("trian", "train")),
            ("an empty command", ("",), "no command"),
            ("a command of options", ("--steps", "5"), "--steps"),
            ("a missing model", ("sample",), "MODEL"),
            ("two models", ("info", "a", "b"), "too many"),
            ("verify of three", ("verify", "a", "b", "c"), "too many"),
            ("convert without OUT", ("convert", "a"), "OUT"),
            ("contradictions", (*new, "--out", "a.tinygpt"), "--no-save"),
            ("a prompt twice", ("sample", "m", "--prompt", "a", "--file", "b"), "both"),
            ("an unknown kind", ("convert", "a", "b", "--dtype", "f8"), "f32|f16|int4"),
            ("an unknown lever", (*new, "--levers", "-warp"), "warp"),
            ("a lever without a sign", (*new, "--levers", "simd"), "simd"),
            ("an unknown instruction set", (*new, "--isa", "mmx"), "mmx"),
            ("an unknown device", (*new, "--device", "tpu"), "cpu|webgpu"),
            ("an unknown bench", ("bench", "nothing"), "nothing"),
            ("no bench", ("bench",), "usage"),
            ("an unknown corpus", ("corpus", "poems"), "poems"),
            ("no bytes of stories", ("corpus", "stories", "--bytes", "0"), "--bytes"),
            ("stories of 5T", ("corpus", "stories", "--bytes", "5T"), "--bytes"),
            ("nothing to dump", ("dump",), "want MODEL or --preset"),
            ("a dump of both", ("dump", "m", "--preset", "tiny"), "both"),
            ("a name of a megabyte", (*new, "--preset", "x" * 100000), "--preset"),
            ("a path of a megabyte", ("info", "y" * 100000), "too long"),
            ("many arguments", (*new, *["z"] * 20000), "too many"),
            ("bytes that are no UTF-8", (*new, b"\xff\xfe"), "UTF-8"),
            ("a value that is no UTF-8", (*new, "--preset", b"sm\xc3"), "UTF-8"),
            ("an option that is no UTF-8", (*new, b"--st\xffeps", "5"), "UTF-8"),
            ("a command that is no UTF-8", (b"tr\xffain",), "no command"),
            ("control characters", (*new, "--preset", "a\x1b[31mb\n\x07"), "--preset")):
        refused(what, *args, err=err)
    r = run([b""], executable=tinygpt("--version").argv[0])
    expect(r, 2, "an empty argv[0] and no command", err="usage")
    expect(tinygpt("--", "--help"), 2, "a command behind --")


def a_device_that_is_not_there():
    """Nothing is begun, and the message says what to install; a build without WebGPU says so."""
    for what, library in (("no such library", "none.so"), ("a library of something else", "a.so")):
        write("a.so", b"text")
        r = tinygpt("train", "--data", text_file(), "--device", "webgpu", "--out", "a.tinygpt",
                    env={"TG_WEBGPU_LIB": os.path.abspath(library)})
        check(r.code in (1, 2) and "webgpu" in r.errors.lower(), what, r.errors, r.argv)
        equal(os.path.exists("a.tinygpt"), False, f"{what}: no file")


# ------------------------------------------------------------------------------------------- texts


def short_texts():
    """A window of 16 needs 17 bytes to train on; what is shorter is told so, with both numbers."""
    data = read(text_file())
    for n in (0, 1, 15, 16):
        write("t.txt", data[:n])
        refused(f"a text of {n} bytes", "train", "--data", "t.txt", *SMALL, "--val", "0", "--out",
                "a.tinygpt", err=("t.txt", f"{n} ", "17"))
    write("t.txt", data[:17])
    refused("17 bytes, of which one is held back", "train", "--data", "t.txt", *SMALL, "--val",
            "0.1", "--out", "a.tinygpt", err=("16", "17"))
    for n in (17, 18, 40):
        write("t.txt", data[:n])
        r = tinygpt("train", "--data", "t.txt", *TINY, *SILENT, "--val", "0", "--steps", "3",
                    "--out", f"{n}.tinygpt")
        expect(r, 0, f"a text of {n} bytes is enough", err="very little")
        whole(f"{n}.tinygpt", f"a text of {n} bytes")
    write("t.txt", data[:100])
    expect(tinygpt("train", "--data", "t.txt", *TINY, *SILENT, "--steps", "3", "--no-save"), 0,
           "no room for a validation window", err="validation")
    write("t.txt", data[:16])
    expect(train("--steps", "2", "--out", "m.tinygpt"), 0, "a model")
    refused("eval of a text that is too short", "eval", "m.tinygpt", "--data", "t.txt",
            err=["t.txt", "17"])
    write("t.txt", data[:1000])
    refused("eval of a part that is too short", "eval", "m.tinygpt", "--data", "t.txt", "--val",
            "0.01", err="17")


def things_that_are_no_text():
    """Folders, pipes and devices are refused without waiting for them."""
    os.mkdir("folder")
    os.mkfifo("pipe")
    os.symlink("loop", "loop")
    os.symlink("gone", "dangling")
    for name, err in (("folder", "folder"), ("pipe", "pipe"), ("/dev/zero", "device"),
                      ("/dev/null", "device"), ("/dev/tty", "/dev/tty"),
                      ("/dev/stdin", "/dev/stdin"),
                      ("loop", "loop"), ("dangling", "dangling"), ("none/t.txt", "none/t.txt"),
                      ("folder/", "folder"), ("/proc/self/mem", "0 bytes")):
        refused(f"--data {name}", "train", "--data", name, *SMALL, "--out", "a.tinygpt", err=err)
        for command in (("info",), ("verify",), ("sample",), ("eval", "--data", text_file()),
                        ("train", "--data", text_file(), "--resume"),
                        ("train", "--data", text_file(), "--no-save", "--from")):
            refused(f"{' '.join(command[::2])} {name}", *command, name, err=name)
        refused(f"convert {name}", "convert", name, "b.tinygpt", err=name)


def odd_texts():
    """Whatever the bytes are, they can be learnt; what looks like a mistake is told."""
    words = read(text_file())[:60000]
    dice = random.Random(1)
    noise = bytes(dice.randrange(256) for _ in range(60000))
    for name, data, err in (("binary", noise, "UTF-8|binary|NUL"),
                            ("gzip", zlib.compress(words * 3, 9), "UTF-8|binary|NUL"),
                            ("UTF-16", "\ufeff".encode("utf-16-le") + words.decode()
                             .encode("utf-16-le"), "UTF-16"),
                            ("UTF-16 without its mark", words.decode().encode("utf-16-be"),
                             "UTF-16"),
                            ("NUL bytes", words[:30000] + b"\0" * 30000, "NUL"),
                            ("one byte over and over", b"a" * 60000, "only 1 different byte"),
                            ("CR alone", words.replace(b"\n", b"\r"), "CR"),
                            ("pasted copies", words[:4096] * 15, "repeats"),
                            ("Latin-1", words + "élan".encode("latin-1") * 9, "UTF-8")):
        write("t.bin", data)
        r = tinygpt("train", "--data", "t.bin", *TINY, *SILENT, "--steps", "5",
                    "--out", "a.tinygpt", "--force")
        expect(r, 0, f"a text of {name}", err=["warning", err])
        whole("a.tinygpt", f"trained on {name}")
    write("t.bin", words)
    expect(tinygpt("train", "--data", "t.bin", *TINY, *SILENT, "--steps", "5", "--no-save"), 0,
           "a good text")
    equal(tinygpt("train", "--data", "t.bin", *TINY, *SILENT, "--steps", "5", "--no-save").err, b"",
          "a good text gets no warning")


# ---------------------------------------------------------------------------------- damaged models


def models():
    """A small v3 run and the same as v2 in all its kinds."""
    small = ("--layers", "1", "--width", "4", "--heads", "2", "--ctx", "4", "--batch", "2")
    r = tinygpt("train", "--data", text_file(), *small, *SILENT, "--steps", "6",
                "--eval-every", "3", "--out", "good3")
    expect(r, 0, "a small run")
    for name, options in (("good2", ("--format", "v2")), ("good1", ("--format", "v1")),
                          ("half", ("--dtype", "f16")), ("four", ("--dtype", "int4"))):
        expect(tinygpt("convert", "good3", name, *options), 0, f"convert to {name}")


def damaged(what, data, err=(), command="verify", codes=(2,)):
    write("bad.tinygpt", data)
    return refused(what, command, "bad.tinygpt",
                   err=("bad.tinygpt", *err) if 0 not in codes else err,
                   codes=codes)


def cut_files():
    """A file that ends too early is refused wherever it ends, and one that goes on, too."""
    models()
    for name in ("good3", "good2", "half", "four", "good1"):
        data = read(name)
        head = 400 if name == "good3" else 12 + struct.unpack_from("<I", data, 8)[0] + 4
        cuts = set(range(0, min(head, 260))) | set(range(260, head, 23))
        cuts |= set(range(head, len(data), max(1, len(data) // 120)))
        cuts |= set(range(len(data) - 40, len(data)))
        for n in sorted(cuts):
            damaged(f"{name} cut at byte {n} of {len(data)}", data[:n], ("want", "have"),
                    "info" if n % 2 else "verify")
        for extra in (b"\0", b"x", b"\0" * 64, b"PK\3\4" + b"\0" * 100, data):
            damaged(f"{name} with {len(extra)} bytes behind", data + extra, ("want", "have"))
    for command in (("sample", "bad.tinygpt"), ("tokenize", "bad.tinygpt", "x"),
                    ("dump", "bad.tinygpt"),
                    ("eval", "bad.tinygpt", "--data", text_file()), ("convert", "bad.tinygpt", "o"),
                    ("train", "--data", text_file(), "--resume", "bad.tinygpt"),
                    ("verify", "good3", "bad.tinygpt"),
                    ("bench", "decode", "--model", "bad.tinygpt"),
                    ("train", "--data", text_file(), "--no-save", "--from", "bad.tinygpt")):
        write("bad.tinygpt", read("good3")[:-1])
        refused(f"{command[0]} of a cut file", *command, err=("bad.tinygpt", "want", "have"))


def changed_headers():
    """Every byte of the fixed headers, changed in several ways."""
    models()
    data = read("good3")
    for at in range(struct.unpack_from("<I", data, 12)[0]):
        for change in (0xFF, 0x01, 0x80):
            bad = bytearray(data)
            bad[at] ^= change
            damaged(f"v3 header byte {at} ^ {change}", bad, ("want", "have"))
    for name in ("good2", "four"):
        data = read(name)
        head = 12 + struct.unpack_from("<I", data, 8)[0] + 4
        for at in [*range(600), *range(600, head, 5), *range(head - 200, head)]:
            bad = bytearray(data)
            bad[at] ^= 0xFF if at % 2 else 0x01
            # Magic, version and length are refused; in the JSON a digit may change unseen, since
            # v1 and v2 have no checksum, but nothing may break.
            damaged(f"{name} header byte {at} changed", bad, codes=(2,) if at < 12 else (0, 2),
                    command="info" if at % 3 else "verify")


HOSTILE = (0, 1, 2, 3, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 64, 2**32 - 1)
HOSTILE_64 = HOSTILE + (2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 64, 2**64 - 1)


def hostile_lengths():
    """Length fields with any value, and checksums that agree with them."""
    models()
    data = read("good3")
    table = sections(data)
    fields = [(8, "I", "version"), (12, "I", "header length"), (16, "Q", "required features"),
              (32, "Q", "file length"), (40, "I", "sections"), (48, "I", "chunk length"),
              (52, "Q", "reserved")]
    for name, (at, _, _) in table.items():
        fields += [(at, "I", f"id of {name}"), (at + 8, "Q", f"offset of {name}"),
                   (at + 16, "Q", f"length of {name}"), (at + 24, "Q", f"reserved of {name}")]
    tnsr = table["TNSR"][1]
    fields += [(tnsr, "I", "number of tensors"), (tnsr + 4, "H", "name length"),
               (tnsr + 6, "B", "element type"), (tnsr + 7, "B", "dimensions"),
               (tnsr + 8, "Q", "tensor offset"), (tnsr + 16, "Q", "tensor length"),
               (tnsr + 24, "Q", "first dimension"), (tnsr + 32, "Q", "second dimension")]
    for at, kind, name in fields:
        old = struct.unpack_from("<" + kind, data, at)[0]
        limit = 256 ** struct.calcsize(kind)
        for value in sorted({v for v in (*HOSTILE_64, old + 1, old - 1, old * 2, len(data))
                             if 0 <= v < limit and v != old}):
            bad = bytearray(data)
            struct.pack_into("<" + kind, bad, at, value)
            damaged(f"v3 {name} = {value}, checksums right", repair(bad))
    swapped = bytearray(data)
    a, b = table["META"][0], table["TNSR"][0]
    swapped[a:a + 32], swapped[b:b + 32] = data[b:b + 32], data[a:a + 32]
    damaged("v3 with two sections swapped in its table", repair(swapped))

    for name in ("good2", "half", "four"):
        data = read(name)
        for at, what in ((4, "version"), (8, "header length")):
            old = struct.unpack_from("<I", data, at)[0]
            for value in sorted({v for v in (*HOSTILE, old + 1, old - 1, len(data), len(data) - 12)
                                 if v not in (old, 1)}):
                bad = bytearray(data)
                struct.pack_into("<I", bad, at, value)
                damaged(f"{name} {what} = {value}", bad)
        bad = bytearray(data)
        struct.pack_into("<i", bad, 12 + struct.unpack_from("<I", data, 8)[0], -1)
        damaged(f"{name} with a negative step", bad, ("step", "-1"))


def unknown_families():
    """A run of a family that this program has not: named by whoever reads it, converters too."""
    expect(train("--family", "llama", "--steps", "1", "--out", "a.tinygpt"), 0, "a run")
    write("x.tinygpt", with_json(read("a.tinygpt"), lambda t: t.replace(b'"llama"', b'"lhama"')))
    for command in ("info", "x.tinygpt"), ("convert", "x.tinygpt", "x.gguf"):
        expect(tinygpt(*command), 2, f"{command[0]} of an unknown family", err="have lhama")


def hostile_json():
    """Headers that say what cannot be, in files that are otherwise in order."""
    models()
    v3, v2 = read("good3"), read("good2")
    expect(tinygpt("info", write("same.tinygpt", with_json(v3, lambda t: t))), 0,
           "unchanged v3 JSON")
    expect(tinygpt("info", write("same.tinygpt", with_json(v2, lambda t: t))), 0,
           "unchanged v2 JSON")
    values = ("0", "-1", "1.0", "1e0", "null", "true", '"1"', "[]", "{}", "257", "2147483648",
              "4294967297", "18446744073709551616", "9007199254740993", "1e999", "NaN", "", "01",
              "+1")
    for base, name in ((v3, "v3"), (v2, "v2")):
        for key, old in (("layers", "1"), ("dModel", "4"), ("heads", "2"), ("ctx", "4"),
                         ("dMlp", "16")):
            for value in values:
                damaged(f"{name} {key} = {value or 'nothing'}",
                        with_json(base,
                                  swap(f'"{key}":{old}'.encode(), f'"{key}":{value}'.encode())))
        for what, change in (
                ("heads that do not divide", swap(b'"heads":2', b'"heads":3')),
                ("a key twice", swap(b'"heads":2', b'"heads":2,"heads":2')),
                ("no configuration", swap(b'"config"', b'"konfig"')),
                ("nothing", lambda t: b""), ("a list", lambda t: b"[]"),
                ("a number", lambda t: b"1"),
                ("a NUL behind it", lambda t: t + b"\0"), ("a second object", lambda t: t + b"{}"),
                ("a byte order mark", lambda t: b"\xef\xbb\xbf" + t),
                ("no end", lambda t: t[:-1]), ("an open string", lambda t: t[:-1] + b',"x":"'),
                ("bad UTF-8", swap(b'"config"', b'"c\xffonfig":1,"config"')),
                ("a lone surrogate", swap(b'"config"', b'"\\ud800":1,"config"')),
                ("depth", lambda t: t[:-1] + b',"x":' + b"[" * 100000 + b"]" * 100000 + b"}"),
                ("depth without an end", lambda t: t[:-1] + b',"x":' + b'{"a":' * 200000),
                ("a trailing comma", lambda t: t[:-1] + b",}"),
                ("a comment", lambda t: b"/* */" + t), ("NaN", lambda t: t[:-1] + b',"x":NaN}'),
                ("a control character", lambda t: t[:-1] + b',"x":"\x01"}')):
            damaged(f"{name} JSON with {what}", with_json(base, change))
    for what, change in (("a negative step", swap(b'"step":6', b'"step":-6')),
                         ("a step that is no number", swap(b'"step":6', b'"step":"6"')),
                         ("another family", swap(b'"family":"tinygpt"', b'"family":"llama"'))):
        damaged(f"v3 JSON with {what}", with_json(v3, change))
    # What only resuming reads is checked when a run is resumed.
    for what, change in (("no updates", swap(b'"updates":6', b'"updates":-6')),
                         ("a batch of -1", swap(b'"batch":2', b'"batch":-1')),
                         ("a rate of 0", swap(b'"lr":0.0003', b'"lr":0')),
                         ("a rate that is no number", swap(b'"lr":0.0003', b'"lr":"x"')),
                         ("an unknown schedule",
                          swap(b'"schedule":"constant"', b'"schedule":"up"')),
                         ("a hash that is no number",
                          swap(b'"lossHash":', b'"lossHash":null,"x":')),
                         ("a stride of 0", swap(b'"historyStride":1', b'"historyStride":0')),
                         ("a text that is a list", swap(b'"mark":', b'"mark":[1],"x":')),
                         ("another text", swap(b'"bytes":', b'"bytes":1'))):
        write("run.tinygpt", with_json(v3, change))
        refused(f"resume of a run with {what}", "train", "--data", text_file(), *SILENT, "--resume",
                "run.tinygpt", "--steps", "9", err="want")


def flipped_bits():
    """Any bit of a v3 file: verify finds it, and no command takes damaged weights for whole."""
    models()
    data = read("good3")
    table = sections(data)
    dice = random.Random(7)
    places = dice.sample(range(8 * len(data)), 500)
    for place in places:
        bad = bytearray(data)
        bad[place // 8] ^= 1 << place % 8
        damaged(f"bit {place % 8} of byte {place // 8}", bad, ("want", "have"))
    _, offset, n = table["DATA"]
    for place in dice.sample(range(8 * offset, 8 * (offset + n // 3)), 20):
        bad = bytearray(data)
        bad[place // 8] ^= 1 << place % 8
        write("bad.tinygpt", bad)
        refused(f"sample with bit {place} flipped", "sample", "bad.tinygpt", "--tokens", "5",
                err="bad.tinygpt")
        refused(f"resume with bit {place} flipped", "train", "--data", text_file(), *SILENT,
                "--resume", "bad.tinygpt", "--steps", "9", err="bad.tinygpt")
        refused(f"convert with bit {place} flipped", "convert", "bad.tinygpt", "out.tinygpt",
                err="bad.tinygpt")


def a_damaged_file_has_a_predecessor():
    """FILE damaged, FILE.prev whole: that one is taken, aloud, and the run ends the same."""
    options = ("--eval-every", "4", "--save-every", "4")
    expect(train(*options, "--steps", "16", "--out", "calm.tinygpt"), 0, "an undisturbed run")
    expect(train(*options, "--steps", "12", "--out", "a.tinygpt"), 0, "a run")
    expect(tinygpt("sample", "a.tinygpt.prev", "--tokens", "30"), 0, "the predecessor")
    text = tinygpt("sample", "a.tinygpt.prev", "--tokens", "30").out
    for what, damage in (("cut", lambda d: d[:len(d) // 2]), ("empty", lambda d: b""),
                         ("junk", lambda d: b"\xaa" * len(d)),
                         ("flipped", lambda d: d[:30000] + bytes([d[30000] ^ 4]) + d[30001:])):
        good = read("a.tinygpt")
        write("a.tinygpt", damage(good))
        r = tinygpt("sample", "a.tinygpt", "--tokens", "30")
        expect(r, 0, f"sample, the file is {what}", err=["warning", "a.tinygpt.prev"])
        equal(r.out, text, f"text of the predecessor, the file is {what}")
        for command in (("sample", "--tokens", "3"), ("eval", "--data", text_file())):
            r = tinygpt(command[0], "a.tinygpt", *command[1:], "--json")
            expect(r, 0, f"{command[0]} --json, the file is {what}", err="warning")
            equal((r.json()["file"], r.json()["fell_back"]), ("a.tinygpt.prev", True),
                  f"{command[0]} --json names the file that was read, the file is {what}")
        refused(f"verify, the file is {what}", "verify", "a.tinygpt", err="a.tinygpt")
        write("a.tinygpt", good)
    seen = tinygpt("sample", "a.tinygpt", "--tokens", "3", "--json").json()
    equal((seen["file"], seen["fell_back"]), ("a.tinygpt", False), "sample --json, a good file")
    write("a.tinygpt", read("a.tinygpt")[:-1])
    last = resume("a.tinygpt", "--steps", "13", "--no-save", "--json").json_lines()[-1]
    equal((last["file"], last["fell_back"]), ("a.tinygpt.prev", True),
          "the last line of train --resume --json")
    expect(resume("a.tinygpt", "--steps", "16", "--out", "b.tinygpt"), 0,
           "resume of a damaged file",
           err=["warning", "a.tinygpt.prev"])
    same_run("calm.tinygpt", "b.tinygpt", "resumed from the predecessor")
    # Saving over the damaged file must not push it onto the whole one: that would be the only one.
    for damage in (lambda d: d[:-1], lambda d: d[:3000]):
        write("a.tinygpt", damage(read("a.tinygpt")))
        expect(resume("a.tinygpt", "--steps", "12"), 0, "resume into the damaged file",
               err="warning")
        whole("a.tinygpt", "saved over a damaged file")
        whole("a.tinygpt.prev", "the predecessor of a damaged file")
    write("a.tinygpt", b"junk")
    write("a.tinygpt.prev", b"junk")
    refused("both are damaged", "sample", "a.tinygpt", err="a.tinygpt")
    refused("resume, both are damaged", "train", "--data", text_file(), *SILENT, "--resume",
            "a.tinygpt", err="a.tinygpt")


def small_stacks_and_memories():
    """128 KiB of stack are enough; too little memory is an error with a message, not a signal."""
    def stack():
        resource.setrlimit(resource.RLIMIT_STACK, (128 << 10, 128 << 10))

    expect(train("--steps", "5", "--out", "a.tinygpt", preexec_fn=stack), 0,
           "train, 128 KiB of stack")
    for args in (("sample", "a.tinygpt"), ("info", "a.tinygpt"), ("dump", "a.tinygpt"),
                 ("verify", "a.tinygpt", "a.tinygpt"),
                 ("convert", "a.tinygpt", "b", "--dtype", "int4"),
                 ("corpus", "stories", "--bytes", "100k"), ("train", "--help")):
        expect(tinygpt(*args, preexec_fn=stack), 0, f"{args[0]}, 128 KiB of stack")
    codes = set()
    for megabytes in (4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256):
        def memory(n=megabytes << 20):
            resource.setrlimit(resource.RLIMIT_AS, (n, n))
        # With the page in it the program is larger than the first of these: the system cannot load it.
        if megabytes < 32 and tinygpt("--version", preexec_fn=memory).code not in (0, 127):
            continue
        r = tinygpt("train", "--data", text_file(), "--preset", "medium", *SILENT, "--steps", "1",
                    "--val", "0", "--threads", "2", "--out", "m.tinygpt", preexec_fn=memory)
        codes.add(r.code)
        # Below a few megabytes the loader itself gives up, with 127 and its own words.
        if r.code != 0:
            check(r.code in (1, 2, 127) and r.err, f"{megabytes} MiB of addresses",
                  f"exit code {r.code}, {r.errors!r}", r.argv)
            equal(os.path.exists("m.tinygpt"), False, f"no file with {megabytes} MiB")
        else:
            os.remove("m.tinygpt")
    check(codes & {1, 2} and 0 in codes, "some limits were too small and some were not", str(codes))


main(bad_numbers, sizes_that_do_not_fit, bad_options, a_device_that_is_not_there, short_texts, things_that_are_no_text,
     odd_texts, cut_files, changed_headers, hostile_lengths, unknown_families, hostile_json, flipped_bits,
     a_damaged_file_has_a_predecessor, small_stacks_and_memories)
