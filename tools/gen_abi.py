#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_abi.py [--verify | FILE] - writes web/src/lib/abi.gen.ts from the headers.

Reads include/tinygpt.h whole, the imports and exports of src/base/os/os_wasm.h, the imports of
src/backend/webgpu/device/gpu_js.h, and the list of callbacks in src/api/callbacks_wasm.c. The parser knows the few forms that these use and stops with
an error at anything else, so that a new construct cannot be passed over.

Layouts are computed for both pointer widths: every member at the next multiple of its own size, a
struct as aligned as its widest member. That is what clang does, which --verify has it confirm:
_Static_assert for every size, offset and enum value, compiled for wasm32 and wasm64.

Without arguments it prints the file; FILE writes it there.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEADER = "include/tinygpt.h"
WASM_HEADER = "src/base/os/os_wasm.h"
GPU_HEADER = "src/backend/webgpu/device/gpu_js.h"
CALLBACKS = "src/api/callbacks_wasm.c"
NATIVE_ALONE = ("src/api/native_files.c", "src/api/tuning.c", "src/io/output.c")

# C type -> letter of a signature and kind of a member, bytes for wasm32 and wasm64.
SCALARS = {
    "bool": ("b", "bool", 1, 1),
    "int": ("i", "i32", 4, 4),
    "int32_t": ("i", "i32", 4, 4),
    "unsigned": ("u", "u32", 4, 4),
    "uint32_t": ("u", "u32", 4, 4),
    "int64_t": ("l", "i64", 8, 8),
    "uint64_t": ("L", "u64", 8, 8),
    "size_t": ("p", "ptr", 4, 8),
    "float": ("f", "f32", 4, 4),
    "double": ("d", "f64", 8, 8),
}
POINTER = ("p", "ptr", 4, 8)
# What the letters are in TypeScript, as a parameter and as a result.
TAKES = {"b": "boolean", "i": "number", "u": "number", "l": "number | bigint",
         "L": "number | bigint", "p": "Ptr", "f": "number", "d": "number"}
GIVES = dict(TAKES, l="bigint", L="bigint", v="void")


# An element of an array is a member of its own.
CHOSEN, NUMBERED = r"\[(\d+)\]", r"_\1"


class Unknown(Exception):
    """A construct that the generator does not know."""


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


class Header:
    """All that the headers declare, in their order."""

    def __init__(self):
        self.status = []      # (name, value, sentence)
        self.version = None
        self.enums = {}       # name -> [(item, value)]
        self.structs = {}     # name -> [(member, kind, count, offsets)]
        self.sizes = {}       # name -> (bytes32, bytes64, align32, align64)
        self.opaque = set()
        self.function_types = {}  # name -> (result, [(type, name)])
        self.functions = {}   # the same
        self.imports = {}     # the same

    # ------------------------------------------------------------------------------ preprocessor

    def preprocess(self, text):
        """Takes the directives out; every one must be of a known form."""
        text = without_comments(text).replace("\\\n", " ")
        text = re.sub(r"#ifdef __cplusplus\s*\n.*?#endif", "", text, flags=re.S)
        text = re.sub(r"#if defined\(TG_UNSTABLE\) [^\n]*\n.*?#endif", "", text, flags=re.S)
        # The defaults of a struct are exported; what gives them by value is for C alone.
        text = re.sub(r"^#define TG_OPTIONS\(name\)[^\n]*", "", text, flags=re.M)
        text = re.sub(r"^TG_OPTIONS\((\w+)\)$", r"TG_API void \1_init(\1 *options, size_t struct_bytes);",
                      text, flags=re.M)
        kept = []
        for line in text.split("\n"):
            if not line.lstrip().startswith("#"):
                kept.append(line)
                continue
            line = " ".join(line.split())
            x_list = re.fullmatch(r"#define TG_STATUS_LIST\(X\) (.*)", line)
            version = re.fullmatch(r'#define TG_VERSION_TEXT "([^"]*)"', line)
            if x_list:
                item = r'X\((\w+), (-?\d+), "([^"]*)"\)'
                self.status = [(n, int(v), s) for n, v, s in re.findall(item, x_list[1])]
                if re.sub(item, "", x_list[1]).strip():
                    raise Unknown("TG_STATUS_LIST: " + re.sub(item, "", x_list[1]).strip())
            elif version:
                self.version = version[1]
            elif not re.fullmatch(
                    r'#include [<"][\w./]+[>"]|#ifndef \w+_H|#define \w+_H|#endif|#else'
                    r"|#ifdef TG_(ADVANCED|UNSTABLE)|#undef TG_OPTIONS"
                    r''
                    r"|#define TG_VERSION_(MAJOR|MINOR|PATCH) \d+"
                    r"|#if defined\(__GNUC__\) && !defined\(TG_NO_VISIBILITY\)"
                    r"|#define TG_API( __attribute__\(.*\))?"
                    r"|#(define|undef) TG_STATUS_ENUM.*|#define TG_IMPORT\(name\) .*", line):
                raise Unknown("directive: " + line)
        return "\n".join(kept)

    # -------------------------------------------------------------------------------- declarations

    def declarations(self, text):
        """Splits at the semicolons outside of braces."""
        depth, start, out = 0, 0, []
        for i, c in enumerate(text):
            depth += (c == "{") - (c == "}")
            if c == ";" and depth == 0:
                out.append(" ".join(text[start:i].split()))
                start = i + 1
        if text[start:].strip():
            raise Unknown("at the end: " + text[start:].strip()[:80])
        return out

    def declare(self, d, private_is_known):
        opaque = re.fullmatch(r"typedef struct (\w+) (\w+)", d)
        body = re.fullmatch(r"typedef (struct|enum) (\w+) \{(.*)\} (\w+)", d)
        function_type = re.fullmatch(r"typedef ([\w ]+?\**) ?\(\*(\w+)\)\((.*)\)", d)
        function = re.fullmatch(r"TG_API ([\w ]+?\**) ?\b(\w+)\((.*)\)", d)
        imported = re.fullmatch(r'TG_IMPORT\("(\w+)"\) ([\w ]+?\**) ?\b(\w+)\((.*)\)', d)
        if opaque and opaque[1] == opaque[2]:
            self.opaque.add(opaque[1])
        elif body and body[2] == body[4] and body[1] == "struct":
            self.struct(body[2], body[3])
        elif body and body[2] == body[4]:
            self.enum(body[2], body[3])
        elif function_type:
            self.function_types[function_type[2]] = (function_type[1].strip(),
                                                     self.parameters(function_type[3]))
        elif function:
            described = (function[1].strip(), self.parameters(function[3]))
            if self.functions.get(function[2], described) != described:
                raise Unknown("second declaration, not the same: " + function[2])
            self.functions[function[2]] = described
        elif imported:
            self.imports[imported[1]] = (imported[2].strip(), self.parameters(imported[4]))
        elif re.fullmatch(r"enum \{ TG_\w+_MAX = \d+ \}", d):
            pass  # the room of a table that a caller fills, which JavaScript has no use for
        elif not (private_is_known
                  and re.fullmatch(r"(unsigned|bool|int|void) tg_wasm_\w+\(.*\)", d)):
            raise Unknown("declaration: " + d[:120])

    def enum(self, name, body):
        if name == "tg_status":
            self.enums[name] = [("TG_" + n, v) for n, v, _ in self.status]
            return
        items, value = [], 0
        for item in filter(None, (part.strip() for part in body.split(","))):
            m = re.fullmatch(r"(TG_\w+)(?: = (-?\d+|'\w'))?", item)
            if not m:
                raise Unknown(f"enum {name}: {item}")
            if m[2]:
                value = ord(m[2][1]) if m[2][0] == "'" else int(m[2])
            items.append((m[1], value))
            value += 1
        self.enums[name] = items

    def base(self, c_type):
        """Letter, kind and bytes of a type without its `const`."""
        c_type = re.sub(r"\bconst\b|\bstruct\b", " ", c_type)
        c_type = " ".join(c_type.replace("*", " * ").split())
        if c_type == "char *":
            return ("p", "text", 4, 8)
        if c_type.endswith("*"):
            pointed = c_type.split()[0]
            known = (pointed in SCALARS or pointed in self.opaque or pointed in self.structs
                     or pointed in self.enums or pointed in ("void", "char", "uint8_t"))
            if not known or c_type.split()[1:] not in (["*"], ["*", "*"]):
                raise Unknown("pointer: " + c_type)
            return POINTER
        if c_type in SCALARS:
            return SCALARS[c_type]
        if c_type in self.enums:
            return ("i", "i32", 4, 4)
        if c_type in self.function_types:
            return POINTER
        if c_type in self.structs:
            return ("s", c_type, self.sizes[c_type][0], self.sizes[c_type][1])
        raise Unknown("type: " + c_type)

    def struct(self, name, body):
        members = []
        for line in filter(None, (part.strip() for part in body.split(";"))):
            pointer = re.fullmatch(r"[\w ]+\(\*(\w+)\)\(.*\)", line)
            if pointer:
                members.append((pointer[1], "ptr", 1, POINTER))
                continue
            m = re.fullmatch(r"((?:const )?\w+) (.*)", line)
            if not m:
                raise Unknown(f"struct {name}: {line}")
            for declarator in m[2].split(","):
                d = re.fullmatch(r"(\*?)(\w+)(?:\[(\d+)\])?", declarator.strip())
                if not d:
                    raise Unknown(f"struct {name}: {line}")
                if d[3] and m[1] != "char":
                    described = self.base(m[1] + " " + d[1])
                    members += [(f"{d[2]}[{i}]", described[1], 1, described)
                                for i in range(int(d[3]))]
                elif d[3]:
                    members.append((d[2], "chars", int(d[3]), (None, "chars", 1, 1)))
                else:
                    described = self.base(m[1] + " " + d[1])
                    members.append((d[2], described[1], 1, described))
        self.lay_out(name, members)

    def lay_out(self, name, members):
        at, aligned, placed = [0, 0], [1, 1], []
        for member, kind, count, described in members:
            offsets = []
            for w in (0, 1):
                bytes_ = described[2 + w]
                align = self.sizes[kind][2 + w] if kind in self.sizes else bytes_
                at[w] = (at[w] + align - 1) // align * align
                offsets.append(at[w])
                at[w] += bytes_ * count
                aligned[w] = max(aligned[w], align)
            placed.append((member, kind, count, tuple(offsets)))
        whole = [(at[w] + aligned[w] - 1) // aligned[w] * aligned[w] for w in (0, 1)]
        self.structs[name] = placed
        self.sizes[name] = (*whole, *aligned)

    def parameters(self, text):
        if text.strip() == "void":
            return []
        out = []
        for part in text.split(","):
            m = re.fullmatch(r"((?:const )?\w+ ?\**(?: ?const)? ?\**)\b(\w+)(\[\d+\])?",
                             part.strip())
            if not m:
                raise Unknown("parameter: " + part)
            out.append((m[1].strip() + (" *" if m[3] else ""), m[2]))
        return out

    # -------------------------------------------------------------------------------- signatures

    def signature(self, function):
        """Letters of result and parameters: `i:pp`. A struct that is returned becomes a first
        parameter, the place to write it to."""
        result, parameters = function
        letters = "".join(self.base(t)[0] for t, _ in parameters)
        if "s" in letters:
            raise Unknown("a struct passed by value")
        if result == "void":
            return "v:" + letters
        given = self.base(result)[0]
        return "v:p" + letters if given == "s" else f"{given}:{letters}"

    def typescript(self, name, function):
        signature = self.signature(function)
        names = [camel(n) for _, n in function[1]]
        if len(names) < len(signature) - 2:
            names.insert(0, "result")
        parameters = ", ".join(f"{n}: {TAKES[t]}" for n, t in zip(names, signature[2:]))
        return f"  {name}({parameters}): {GIVES[signature[0]]};"


def camel(name):
    """snake_case to camelCase; what TypeScript reserves gets an underscore."""
    head, *rest = name.split("_")
    name = head + "".join(part[:1].upper() + part[1:] for part in rest)
    return name + "_" if name in ("default", "function", "with", "new") else name


def parse():
    h = Header()
    for d in h.declarations(h.preprocess(read(HEADER))):
        h.declare(d, private_is_known=False)
    for path in (WASM_HEADER, GPU_HEADER):
        for d in h.declarations(h.preprocess(read(path))):
            h.declare(d, private_is_known=True)
    callbacks(h)
    # What is not in WebAssembly.
    for path in NATIVE_ALONE:
        for name in re.findall(r"^\w[\w *]*?\b(tg_\w+)\(", read(path), re.M):
            h.functions.pop(name, None)
    del h.structs["tg_tile_row"], h.structs["tg_output_rule"], h.enums["tg_output_kind"]
    return h


def callbacks(h):
    """The imports on_* and exports tg_wasm_on_*, which a macro makes from a list."""
    text = without_comments(read(CALLBACKS)).replace("\\\n", " ")
    for d in re.findall(r"typedef [^;]*;", text):
        h.declare(" ".join(d[:-1].split()), private_is_known=False)
    rows = re.search(r"#define CALLBACKS\(X\)(.*)", text)
    found = re.findall(r"X\((\w+), (\w+), (\w+),", rows[1]) if rows else []
    if not found or len(found) != len(re.findall(r"\bX\(", rows[1])):
        raise Unknown("the list CALLBACKS")
    for c_type, name, result in found:
        if h.function_types[c_type][0] != result:
            raise Unknown(f"callback {name}: want the result of {c_type}, have {result}")
        h.imports["on_" + name] = h.function_types[c_type]
        h.functions["tg_wasm_on_" + name] = ("size_t", [])
    listed = {c_type for c_type, _, _ in found}
    for c_type in h.function_types:
        if c_type not in listed and c_type not in ("tg_alloc_fn", "tg_tile_fn", "tg_rate_fn", "tg_row_fn",
                                                    "tg_token_loss_fn"):  # native alone
            raise Unknown(f"{c_type} is missing in CALLBACKS")


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def generate(h):
    out = [
        "// SPDX-License-Identifier: Apache-2.0",
        "/**",
        " * abi.gen.ts - the C interface as data: made by tools/gen_abi.py from include/tinygpt.h,",
        " * src/base/os/os_wasm.h, gpu_js.h and src/api/callbacks_wasm.c. Do not edit: run `make gen`.",
        " *",
        " * Offsets and sizes come in pairs, for 32-bit and 64-bit pointers. Letters of calls,",
        " * result first: p pointer or size, i u int and unsigned, l L the same in 64 bits,",
        " * b bool, f float, d double, v nothing. abi.ts makes calls and values of these tables.",
        " */",
        "",
        "/** An address in the module's memory, or a size: a number in both pointer widths. */",
        "export type Ptr = number;",
        "",
        f"export const VERSION = {quoted(h.version)};",
        "",
        "/** tg_status; tg_status_text has a sentence for each. */",
        "export const STATUS = {",
    ]
    out += [f"  {name}: {value}," for name, value, _ in h.status]
    out += ["} as const;", ""]
    for name, items in h.enums.items():
        if name == "tg_status":
            continue
        out.append(f"export const {name} = {{")
        out += [f"  {item}: {value}," for item, value in items]
        out += ["} as const;", ""]
    out += ["/** Structs: size, then every member's kind and offset; `chars` with its length. */",
            "export const STRUCTS = {"]
    for name, members in h.structs.items():
        size = h.sizes[name]
        out.append(f"  {name}: {{")
        out.append(f"    size: [{size[0]}, {size[1]}],")
        out.append("    members: {")
        for member, kind, count, (a, b) in members:
            tail = f", {count}" if kind == "chars" else ""
            out.append(f"      {camel(re.sub(CHOSEN, NUMBERED, member))}: [{quoted(kind)}, {a}, {b}{tail}],")
        out += ["    },", "  },"]
    out += ["} as const;", ""]
    for table, what, functions in (
            ("EXPORTS", "Functions of the module. A struct returned is written to `result`.",
             h.functions),
            ("IMPORTS", "Functions that the module imports from `tinygpt`.", h.imports)):
        out.append(f"/** {what} */")
        out.append(f"export const {table} = {{")
        out += [f"  {name}: {quoted(h.signature(f))}," for name, f in functions.items()]
        out += ["} as const;", "", f"export interface {table.capitalize()} {{"]
        out += [wrapped(h.typescript(name, f)) for name, f in functions.items()]
        out += ["}", ""]
    return "\n".join(out[:-1]) + "\n"


def wrapped(line):
    """At most 100 columns, as the other sources."""
    if len(line) <= 100:
        return line
    head, rest = line.split("(", 1)
    parameters, tail = rest.rsplit(")", 1)
    out, row = [head + "("], "   "
    for part in parameters.split(", "):
        if len(row) + len(part) + 2 > 100:
            out.append(row)
            row = "   "
        row += f" {part},"
    return "\n".join([*out, row, "  )" + tail])


def verify(h):
    """Has clang compile what the tables say, for both pointer widths."""
    checks = ['#include "tinygpt.h"']
    for w, wide in ((0, "__SIZEOF_POINTER__ == 4"), (1, "__SIZEOF_POINTER__ == 8")):
        checks.append(f"#if {wide}")
        for name, members in h.structs.items():
            if name not in h.opaque:
                checks.append(f'_Static_assert(sizeof({name}) == {h.sizes[name][w]}, "{name}");')
            for member, _, _, offsets in members:
                checks.append(f"_Static_assert(offsetof({name}, {member}) == {offsets[w]}, "
                              f'"{name}.{member}");')
        checks.append("#endif")
    for name, items in h.enums.items():
        checks.append(f'_Static_assert(sizeof({name}) == 4, "{name}");')
        checks += [f'_Static_assert({item} == {value}, "{item}");' for item, value in items]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "abi.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(checks) + "\n")
        for target in ("wasm32", "wasm64"):
            subprocess.run(["clang-19", f"--target={target}", "-std=c11", "-nostdlibinc",
                            "-isystem", os.path.join(ROOT, "src/base/wasm"), "-I",
                            os.path.join(ROOT, "include"), "-DTG_UNSTABLE", "-fsyntax-only", path], check=True)
    return len([c for c in checks if c.startswith("_Static")])


def main():
    try:
        h = parse()
    except Unknown as error:
        sys.exit(f"gen_abi.py: unknown {error}")
    if sys.argv[1:] == ["--verify"]:
        print(f"abi: {verify(h)} layouts and values as clang has them, wasm32 and wasm64")
    elif len(sys.argv) == 2:
        with open(sys.argv[1], "w", encoding="utf-8") as f:
            f.write(generate(h))
    else:
        sys.stdout.write(generate(h))


main()
