#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_serve.py - the web server of `tinygpt serve`: who may ask, what comes back, how it ends.

Requests are written to a socket byte for byte, since an HTTP library would put them right. The page
here is a small folder given with --dir; what is built into the program, if anything, is looked at
in one test.
"""
import contextlib
import gzip
import json
import os
import re
import resource
import select
import signal
import socket
import threading
import time

from util import (HANG_S, PROGRAM, TOP, as_nobody, check, equal, expect, finish, is_root, main, note,
                  program_for_nobody, run, skip, start, tinygpt, used, write)

HTML = "<!doctype html><title>page</title>" + "words " * 200
SECURITY = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


def page(folder="page"):
    os.makedirs(f"{folder}/assets")
    write(f"{folder}/index.html", HTML)
    write(f"{folder}/assets/app.js", "export {};\n")
    write(f"{folder}/assets/a.wasm", b"\0asm\1\0\0\0")
    write(f"{folder}/empty.txt", b"")
    write(f"{folder}/_headers", "/*\n")
    write(f"{folder}/.secret", "secret")
    return folder


class Server:
    """A server on a free port, for a with-block; ended by SIGINT, which must give 130."""

    def __init__(self, *args, **popen):
        self.process = start("serve", "--json", "--port", "0", *args, **popen)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"no server: {finish(self.process).errors}")
        self.told = json.loads(line)
        self.port = self.told["port"]
        self.host = f"127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.send_signal(signal.SIGINT)
        r = finish(self.process)
        expect(r, 130, "Ctrl-C ends the server", err="Stopped")

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=HANG_S)

    def raw(self, data):
        """Sends bytes, reads to the end: the server closes, or it is told to."""
        with self.connect() as s:
            s.sendall(data)
            return read_all(s)

    def get(self, path="/", method="GET", host=None, **headers):
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host if host is None else host}"]
        lines += [f"{k.replace('_', '-')}: {v}" for k, v in headers.items()]
        return Reply(self.raw("\r\n".join(lines + ["Connection: close", "", ""]).encode()))


def read_all(s):
    data = b""
    try:
        while True:
            part = s.recv(65536)
            if not part:
                return data
            data += part
    except ConnectionResetError:
        return data


class Reply:
    def __init__(self, data):
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ", 2)
        self.status = int(words[1]) if len(words) > 1 and words[0].startswith("HTTP/1.") else 0
        self.headers = {}
        self.repeated = []
        for line in lines[1:]:
            name, _, value = line.partition(":")
            if name.lower() in self.headers:
                self.repeated.append(name)
            self.headers[name.lower()] = value.strip()

    def __getitem__(self, name):
        return self.headers.get(name)


def header_faults(reply):
    """What a reply lacks of the headers that all of them must have."""
    faults = [f"{k}: {reply[k]}" for k, v in SECURITY.items() if reply[k] != v]
    policy = reply["content-security-policy"] or ""
    for part in ("default-src 'self'", "script-src 'self' 'wasm-unsafe-eval'",
                 "connect-src 'self' https: http:", "worker-src 'self'", "object-src 'none'",
                 "base-uri 'none'", "frame-ancestors 'none'"):
        if part not in policy.split("; "):
            faults.append(f"no {part} in the policy")
    if "unsafe-inline" in policy or "'unsafe-eval'" in policy:
        faults.append("the policy is open")
    if "access-control-allow-origin" in reply.headers:
        faults.append("other origins may read")
    return faults + [f"{name} twice" for name in reply.repeated]


# ---------------------------------------------------------------------------------------- replies


def files_and_types():
    with Server("--dir", page()) as s:
        equal((s.told["files"], s.told["url"]), (4, f"http://{s.host}/"), "what it says it serves")
        for path, kind, body in (
                ("/", "text/html; charset=utf-8", HTML.encode()),
                ("/index.html", "text/html; charset=utf-8", HTML.encode()),
                ("/?a=b&c", "text/html; charset=utf-8", HTML.encode()),
                ("/assets/app.js", "text/javascript; charset=utf-8", b"export {};\n"),
                ("/assets/a.wasm", "application/wasm", b"\0asm\1\0\0\0"),
                ("/empty.txt", "text/plain; charset=utf-8", b"")):
            r = s.get(path)
            equal((r.status, r["content-type"], r.body, r["content-length"]),
                  (200, kind, body, str(len(body))), f"GET {path}")
            equal(header_faults(r), [], f"headers of {path}")
            h = s.get(path, method="HEAD")
            equal((h.status, h["content-length"], h.body), (200, str(len(body)), b""),
                  f"HEAD {path}")


def no_other_path():
    """What is not in the table is not found, whatever it would mean to a file system."""
    with Server("--dir", page()) as s:
        for path in ("/none", "/assets", "/assets/", "//index.html", "/./index.html",
                     "/assets/../index.html", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
                     "/..%2fetc/passwd", "/..\\index.html", "/index.html%00.js", "/index%2ehtml",
                     "/INDEX.HTML", "/index.html/", "/_headers", "/.secret", "/etc/passwd",
                     "http://example.org/", f"http://127.0.0.1:{s.port}/index.html/x", "*",
                     "/" + "a" * 5000):
            r = s.get(path)
            check(r.status in (400, 404), f"GET {path[:60]}", f"have {r.status}")
            equal(header_faults(r) if r.status == 404 else [], [], f"headers of {path[:60]}")


def methods():
    with Server("--dir", page()) as s:
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get",
                       "HEADX"):
            r = s.get("/", method=method)
            equal((r.status, r["allow"]), (405, "GET, HEAD"), f"{method} /")
            equal(header_faults(r), [], f"headers of {method}")
        body = s.raw(f"POST / HTTP/1.1\r\nHost: {s.host}\r\nContent-Length: 99999999999\r\n\r\n"
                     "abc".encode())
        equal(Reply(body).status, 405, "POST with an endless body is not waited for")
        body = s.raw(f"GET / HTTP/1.1\r\nHost: {s.host}\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "ffffffff\r\n".encode())
        equal(Reply(body).status, 413, "GET with a body")


def entity_tags():
    with Server("--dir", page()) as s:
        tag = s.get("/")["etag"]
        check(re.fullmatch(r'"[0-9a-f]+"', tag or ""), "a strong entity tag", repr(tag))
        check(s.get("/assets/app.js")["etag"] != tag, "another file has another tag")
        for value, status in ((tag, 304), (f"W/{tag}", 304), (f'"x", {tag} ,"y"', 304), ("*", 304),
                              ('"x"', 200), (tag.strip('"'), 200), ("", 200), (",,,", 200),
                              (tag[:-1], 200)):
            r = s.get("/", If_None_Match=value)
            equal((r.status, r["etag"], bool(r.body)), (status, tag, status == 200),
                  f"If-None-Match: {value}")
            equal(header_faults(r), [], f"headers with If-None-Match: {value}")
        equal(s.get("/none", If_None_Match="*").status, 404, "no file, no match")


def compressed_beside():
    """FILE.br goes out as FILE to who takes it, with a tag of its own."""
    folder = page()
    packed = b"\x0b\x02\x80{}\n\x03"
    with open(os.path.join(folder, "assets", "app.js.br"), "wb") as f:
        f.write(packed)
    with Server("--dir", folder) as s:
        plain = s.get("/assets/app.js")
        for value, coding in (("br", "br"), ("gzip, br;q=0.5", "br"), ("BR", "br"), ("br;q=0", None),
                              ("gzip", None), ("brotli", None), ("", None)):
            r = s.get("/assets/app.js", Accept_Encoding=value)
            equal((r["content-encoding"], r.body, r["content-type"], r["vary"]),
                  (coding, packed if coding else plain.body, plain["content-type"],
                   "Accept-Encoding"), f"Accept-Encoding: {value}")
            equal(r["etag"] == plain["etag"], not coding, f"the tag with {value}")
            equal(s.get("/assets/app.js", Accept_Encoding=value, If_None_Match=r["etag"]).status, 304,
                  f"asked for again with {value}")
        equal(s.get("/", Accept_Encoding="br")["content-encoding"], None, "none beside it")


def page_is_built():
    p = start("serve", "--port", "0", "--json")
    told = p.stdout.readline()
    p.kill()
    finish(p)
    return bool(told)


def built_in_page():
    """The page of the program itself: every body as in web/dist, compressed for who accepts it."""
    if not page_is_built():
        expect(tinygpt("serve", "--port", "0", "--json"), 1, "a program without the page", err=["without the page", "make web", "--dir"])
        return
    with Server() as s:
        html = s.get("/")
        equal(html.status, 200, "the page")
        # What stands behind # is the page's own and never asked of a server.
        names = set(re.findall(rb'(?:src|href)="\.?/([^"#]+)"', html.body))
        check(names, "the page names its parts")
        saved = 0
        for name in [b"", *sorted(names)]:
            path = "/" + name.decode()
            plain, packed = s.get(path), s.get(path, Accept_Encoding="gzip;q=0.8")
            brotli = s.get(path, Accept_Encoding="gzip, deflate, br")
            # A file of a line or two has nothing to be packed.
            if path.endswith((".js", ".css")) and len(plain.body) > 256:
                equal(brotli["content-encoding"], "br", f"{path} in brotli's format")
                check(len(brotli.body) < len(packed.body), f"{path}: brotli's is the smallest")
            equal((plain.status, plain["content-encoding"]), (200, None), f"{path} plain")
            if packed["content-encoding"] == "gzip":
                equal(gzip.decompress(packed.body), plain.body, f"{path} compressed is the same")
                equal((packed["vary"], plain["vary"]), ("Accept-Encoding",) * 2, f"{path} varies")
                check(packed["etag"] != plain["etag"], f"{path}: two bodies have two tags")
                equal(s.get(path, Accept_Encoding="gzip", If_None_Match=packed["etag"]).status, 304,
                      f"{path} compressed is asked for again")
                equal(s.get(path, If_None_Match=packed["etag"]).status, 200,
                      f"{path} plain has another tag")
                saved += len(plain.body) - len(packed.body)
            dist = os.path.join(TOP, "web", "dist", name.decode() or "index.html")
            if os.path.isfile(dist) and os.path.getmtime(dist) < os.path.getmtime(PROGRAM):
                with open(dist, "rb") as f:
                    equal(plain.body, f.read(), f"{path} is the file of web/dist")
        check(saved > 0, "something is compressed")
        for value, coding in (("gzip", "gzip"), ("GZIP", "gzip"), ("gzip;q=0", None),
                              ("gzip; q=0.000", None), ("gzip;q=0.001", "gzip"), ("br", "br"),
                              ("xgzip", None), ("", None), ("deflate,gzip", "gzip")):
            equal(s.get("/", Accept_Encoding=value)["content-encoding"], coding,
                  f"Accept-Encoding: {value}")


def same_headers_as_static_hosts():
    """web/public/_headers tells static hosts what this server sends."""
    path = os.path.join(TOP, "web", "public", "_headers")
    with open(path, encoding="utf-8") as f:
        wanted = dict(line.strip().split(": ", 1) for line in f
                      if line.startswith("  ") and ": " in line)
    check(len(wanted) >= 6, "_headers has headers", repr(wanted))
    with Server("--dir", page()) as s:
        r = s.get("/")
        for name, value in wanted.items():
            equal(r[name.lower()], value, f"{name} as in _headers")


def rebuilt_page():
    """What --dir names may be built anew while it is served; a build that is under way is waited for."""
    folder = page()
    index = os.path.join(folder, "index.html")
    with Server("--dir", folder) as s:
        before = s.get("/")

        def seen(path, body, what):
            ends = time.monotonic() + HANG_S
            while s.get(path).body != body and time.monotonic() < ends:
                time.sleep(0.02)
            equal(s.get(path).body, body, what)

        write(index, "new")
        seen("/", b"new", "a file that was written anew")
        check(s.get("/")["etag"] != before["etag"], "has another tag")
        write(os.path.join(folder, "more.txt"), "more")
        seen("/more.txt", b"more", "a file that was added")
        os.remove(index)
        write(os.path.join(folder, "other.txt"), "other")
        time.sleep(0.6)  # the server looks four times a second
        equal(s.get("/").body, b"new", "without an index.html the page before stays")
        write(index, "third")
        seen("/", b"third", "the next build")
        equal(s.get("/other.txt").body, b"other", "all of it")
        os.remove(os.path.join(folder, "more.txt"))
        ends = time.monotonic() + HANG_S
        while s.get("/more.txt").status != 404 and time.monotonic() < ends:
            time.sleep(0.02)
        equal(s.get("/more.txt").status, 404, "a file that was taken away")

        # A reply that is under way goes on from the bytes that it began with.
        large = os.path.join(folder, "large.txt")
        write(large, b"1" * 8_000_000)
        seen("/large.txt", b"1" * 8_000_000, "a large file")
        with s.connect() as c:
            c.sendall(f"GET /large.txt HTTP/1.1\r\nHost: {s.host}\r\nConnection: close\r\n\r\n"
                      .encode())
            first = c.recv(1000)
            write(large, b"2" * 8_000_000)
            seen("/large.txt", b"2" * 8_000_000, "the large file anew")
            body = (first + read_all(c)).partition(b"\r\n\r\n")[2]
        check(body == b"1" * 8_000_000, "a reply is of one state of the page", f"{len(body)} bytes")


# ------------------------------------------------------------------------------------ who may ask


def names():
    """DNS rebinding: a page of evil.example whose name now points here must get nothing."""
    with Server("--dir", page()) as s:
        p = s.port
        for host in (f"127.0.0.1:{p}", f"localhost:{p}", f"LOCALHOST:{p}", f"[::1]:{p}"):
            equal(s.get("/", host=host).status, 200, f"Host: {host}")
        for host in ("evil.example", f"evil.example:{p}", f"localhost.evil.example:{p}",
                     f"evil-localhost:{p}", "localhost", "127.0.0.1", f"127.0.0.1:{p + 1}",
                     "localhost:80", f"127.1:{p}", f"0.0.0.0:{p}", f"[::ffff:127.0.0.1]:{p}",
                     f"127.0.0.1.:{p}", f"localhost.:{p}", f":{p}", f"127.0.0.1:0{p}",
                     f"127.0.0.1:{p} ,evil.example", f"user@127.0.0.1:{p}", f"2130706433:{p}",
                     f"127.0.0.1:{p}/", "::1", f"[::1]{p}", f"127.0.0.1:{p}x", "null", "*"):
            r = s.get("/", host=host)
            equal((r.status, HTML.encode() in r.body), (403, False), f"Host: {host}")
            equal(header_faults(r), [], f"headers with Host: {host}")
        for head in ("GET / HTTP/1.1\r\n", "GET / HTTP/1.0\r\n",
                     f"GET / HTTP/1.1\r\nHost: {s.host}\r\nHost: {s.host}\r\n",
                     f"GET / HTTP/1.1\r\nHost: {s.host}\r\nHost: evil.example\r\n",
                     "GET / HTTP/1.1\r\nHost:\r\n"):
            r = Reply(s.raw((head + "Connection: close\r\n\r\n").encode()))
            check(r.status in (400, 403) and HTML.encode() not in r.body,
                  f"refused: {head!r}", f"have {r.status}")
        old = Reply(s.raw(f"GET / HTTP/1.0\r\nHost: {s.host}\r\n\r\n".encode()))
        equal(old.status, 200, "HTTP/1.0 with a host")


def origins():
    with Server("--dir", page()) as s:
        p = s.port
        for origin in (f"http://127.0.0.1:{p}", f"http://localhost:{p}", f"http://[::1]:{p}"):
            equal(s.get("/", Origin=origin).status, 200, f"Origin: {origin}")
        for origin in ("null", "https://evil.example", f"https://127.0.0.1:{p}",
                       f"http://127.0.0.1:{p + 1}", "http://127.0.0.1", "file://",
                       f"http://evil.example:{p}", "chrome-extension://abc", ""):
            equal(s.get("/", Origin=origin).status, 403, f"Origin: {origin}")


def host_and_origin():
    """A good origin does not make up for a name that is not ours, nor the other way round."""
    with Server("--dir", page()) as s:
        ours, evil = f"http://{s.host}", f"evil.example:{s.port}"
        for host, origin, status in ((s.host, ours, 200), ("evil.example", ours, 403),
                                     (evil, ours, 403), (evil, f"http://{evil}", 403),
                                     (s.host, f"http://{evil}", 403)):
            r = s.get("/", host=host, Origin=origin)
            equal((r.status, HTML.encode() in r.body), (status, status == 200),
                  f"Host: {host} with Origin: {origin}")


def only_this_machine():
    """No other address of the machine is listened on."""
    with Server("--dir", page()) as s:
        with open("/proc/net/tcp", encoding="ascii") as f:
            rows = [line.split() for line in f if line.split()[1].endswith(f":{s.port:04X}")
                    and line.split()[3] == "0A"]
        equal([row[1].split(":")[0] for row in rows], ["0100007F"], "listens on 127.0.0.1 alone")
        with open("/proc/net/tcp6", encoding="ascii") as f:
            check(not any(f":{s.port:04X} " in line for line in f), "and on no IPv6 address")


# ------------------------------------------------------------------------------------ bad clients


def broken_requests():
    """None of them may get a file or end the server."""
    with Server("--dir", page()) as s:
        host = f"Host: {s.host}\r\n"
        cases = [b"\0" * 100, b"\xff\xfe" * 50 + b"\r\n\r\n", b"GET\r\n\r\n", b"\r\n\r\n\r\n\r\n",
                 b"GET / HTTP/9.9\r\n" + host.encode() + b"\r\n",
                 f"GET / HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n".encode(),
                 f"GET / HTTP/1.1\r\n{host}Content-Length: 1,1\r\n\r\n".encode(),
                 f"GET / HTTP/1.1\r\n{host}Content-Length: 18446744073709551616\r\n\r\n".encode(),
                 f"GET / HTTP/1.1\r\n{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                 .encode(),
                 f"GET / HTTP/1.1\r\n{host}X: {'a' * 40000}\r\n\r\n".encode(),
                 f"GET /{'a' * 70000} HTTP/1.1\r\n{host}\r\n".encode(),
                 f"GET / HTTP/1.1\r\n{host}{'X: a' * 9000}\r\n\r\n".encode(),
                 b"G" * 100000]
        for i, case in enumerate(cases):
            with s.connect() as c:
                try:
                    c.sendall(case)
                    c.shutdown(socket.SHUT_WR)
                except OSError:
                    pass  # refused while it was being sent
                data = read_all(c)
            check(HTML.encode() not in data, f"broken request {i} gets no file", repr(data[:80]))
        equal(s.get("/").status, 200, "the server is still there")


def strict_heads():
    """What RFC 9112 says must be refused is: by a whole reply, and the connection ends with it."""
    with Server("--dir", page()) as s:
        host = f"Host: {s.host}\r\n"
        get = f"GET / HTTP/1.1\r\n{host}"
        heads = {
            "folded header": get + "X: a\r\n b\r\n\r\n",
            "folded Transfer-Encoding": get + "Transfer-Encoding:\r\n chunked\r\n\r\n",
            "blank in front of the first header": f"GET / HTTP/1.1\r\n {host}\r\n",
            "bare LF": get.replace("\r\n", "\n") + "\n",
            "bare LF behind one header": get + "X: a\nY: b\r\n\r\n",
            "bare LF at the end": get + "\n",
            "bare CR": get + "X: a\rY: b\r\n\r\n",
            "NUL in a value": get + "X: a\0b\r\n\r\n",
            "NUL in Host": f"GET / HTTP/1.1\r\nHost: {s.host}\0.evil\r\n\r\n",
            "NUL in a path": f"GET /\0 HTTP/1.1\r\n{host}\r\n",
            "NUL in a method": f"GET\0 / HTTP/1.1\r\n{host}\r\n",
            "blank before the colon": get + "X : a\r\n\r\n",
            "tab before the colon": get + "X\t: a\r\n\r\n",
            "blank before the colon of Transfer-Encoding": get + "Transfer-Encoding : chunked\r\n\r\n",
            "empty name": get + ": x\r\n\r\n",
            "no colon": get + "X\r\n\r\n",
            "two lengths": get + "Content-Length: 0\r\nContent-Length: 40\r\n\r\n",
            "two equal lengths": get + "Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
            "length +0": get + "Content-Length: +0\r\n\r\n",
            "length -1": get + "Content-Length: -1\r\n\r\n",
            "length 2^64": get + "Content-Length: 18446744073709551616\r\n\r\n",
            "length and coding": get + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "two codings": get + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "chunked in HTTP/1.0": f"GET / HTTP/1.0\r\n{host}Transfer-Encoding: chunked\r\n\r\n",
            "two hosts": get + host + "\r\n",
            "two origins": get + f"Origin: http://{s.host}\r\n" * 2 + "\r\n",
            "no host": "GET / HTTP/1.1\r\n\r\n",
            "tab in the request line": f"GET\t/ HTTP/1.1\r\n{host}\r\n",
            "two blanks in the request line": f"GET  / HTTP/1.1\r\n{host}\r\n",
            "blank behind the version": f"GET / HTTP/1.1 \r\n{host}\r\n",
            "blank in the method": f"G ET / HTTP/1.1\r\n{host}\r\n",
            "no version": f"GET /\r\n{host}\r\n",
            "another host in the target": f"GET http://evil.example/ HTTP/1.1\r\n{host}\r\n",
        }
        for what, head in heads.items():
            # A good request behind it must not be answered: nobody knows where it begins.
            r = Reply(s.raw((head + get + "\r\n").encode("latin-1")))
            equal((r.status, r["connection"], HTML.encode() in r.body), (400, "close", False), what)
            equal((r["content-length"], header_faults(r)), (str(len(r.body)), []), f"reply to: {what}")
        for what, status, head in (
                ("unknown coding", 501, get + "Transfer-Encoding: gzip\r\n\r\n"),
                ("HTTP/2.0", 505, f"GET / HTTP/2.0\r\n{host}\r\n"),
                ("33 KB of headers", 431, get + f"X: {'a' * 33000}\r\n\r\n"),
                ("70 KB of address", 414, f"GET /{'a' * 70000} HTTP/1.1\r\n{host}\r\n"),
                ("a body that is announced", 413,
                 get + "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")):
            data = s.raw(head.encode())
            r = Reply(data)
            equal((r.status, r["connection"], r["content-length"]), (status, "close", str(len(r.body))),
                  what)
            equal(data.count(b"HTTP/1.1"), 1 + r.body.count(b"HTTP/1.1"), f"{what}: one reply")
        equal(s.get("/").status, 200, "the server is still there")


def large_heads():
    """Cookies of other ports of this machine come here, too; they are served."""
    with Server("--dir", page()) as s:
        for what, path, cookies in (("500 cookies", "/", "; ".join(["a=b"] * 500)),
                                    ("16 KB of cookies", "/", "c=" + "x" * 16384),
                                    ("900 arguments", "/?" + "&".join(["a=b"] * 900), "a=b"),
                                    ("a path of 20 KB", "/" + "a" * 20000, "a=b")):
            r = s.get(path, Cookie=cookies)
            equal(r.status, 404 if len(path) > 19000 else 200, what)
        head = f"GET / HTTP/1.1\r\nHost: {s.host}\r\n" + "Cookie: a=b\r\n" * 500
        equal(Reply(s.raw((head + "Connection: close\r\n\r\n").encode())).status, 200,
              "500 headers")


def one_head_in_pieces():
    with Server("--dir", page()) as s, s.connect() as c:
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in f"GET / HTTP/1.1\r\nHost: {s.host}\r\nConnection: close\r\n\r\n".encode():
            c.sendall(bytes([byte]))
        equal(Reply(read_all(c)).body, HTML.encode(), "a head that comes byte by byte")


# A head must be whole this long after the connection; and what a busy machine may be late by.
HEAD_S, LATE_S = 10, 20


def idle_connections():
    """Idle connections do not keep others out, and are closed after some ten seconds."""
    with Server("--dir", page()) as s:
        idle = [s.connect() for _ in range(100)]
        kept = s.connect()
        kept.sendall(f"GET / HTTP/1.1\r\nHost: {s.host}\r\n\r\n".encode())
        begun = time.monotonic()
        equal(s.get("/").status, 200, "a request beside a hundred idle connections")
        equal(select.select(idle, [], [], 0)[0], [], "idle connections that it has waited for")
        equal({read_all(c) for c in idle}, {b""}, "idle connections are closed without a word")
        equal(Reply(read_all(kept)).body, HTML.encode(), "and one that had its reply, too")
        took = time.monotonic() - begun
        check(HEAD_S - 1 < took < HEAD_S + LATE_S, "after some ten seconds", f"{took:.1f} s")
        for c in (*idle, kept):
            c.close()


def slow_heads():
    """The clock runs over the whole head: bytes that trickle do not wind it up again."""
    with Server("--dir", page()) as s:
        begun = time.monotonic()
        slow = [s.connect() for _ in range(3)]
        with s.connect() as kept:  # its second head
            kept.sendall(f"GET / HTTP/1.1\r\nHost: {s.host}\r\n\r\nGET".encode())
            ends = {}
            while len(ends) < len(slow) and time.monotonic() < begun + HEAD_S + LATE_S:
                for c in slow:
                    with contextlib.suppress(OSError):
                        c.sendall(b"G")
                for c in select.select([c for c in slow if c not in ends], [], [], 1)[0]:
                    ends[c] = (time.monotonic() - begun, Reply(read_all(c)))
            equal([r.status for _, r in ends.values()], [408] * 3, "slow heads are told")
            equal({r["connection"] for _, r in ends.values()}, {"close"}, "and their connections closed")
            check(all(HEAD_S - 1 < t < HEAD_S + LATE_S for t, _ in ends.values()),
                  "after some ten seconds", str([t for t, _ in ends.values()]))
            data = read_all(kept)
            equal([data.count(b"HTTP/1.1 " + status) for status in (b"200", b"408")], [1, 1],
                  "the second head of a kept connection")
        for c in slow:
            c.close()


def slow_clients_and_honest_ones():
    """A thousand that send a byte now and then, and come back when they are cut off, lock nobody out."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, most[1]), most[1]))
    with Server("--dir", page()) as s:
        done, refused, opened = threading.Event(), [], [0]

        def attack():
            clients = {}
            while not done.is_set():
                while len(clients) < 1000 and not done.is_set():
                    c = socket.socket()
                    c.setblocking(False)
                    c.connect_ex(("127.0.0.1", s.port))
                    clients[c] = opened[0] = opened[0] + 1
                for c in list(clients):
                    try:
                        c.send(b"G")
                    except BlockingIOError:
                        pass
                    except OSError:
                        c.close()
                        del clients[c]
                done.wait(0.5)
            for c in clients:
                c.close()

        def honest():
            for _ in range(4):
                try:
                    body = s.get("/").body
                except OSError as e:
                    body = repr(e)
                if body != HTML.encode():
                    refused.append(body[:40])
                time.sleep(0.1)

        attacker = threading.Thread(target=attack)
        attacker.start()
        try:
            while opened[0] < 1000:
                time.sleep(0.01)
            threads = [threading.Thread(target=honest) for _ in range(32)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        finally:
            done.set()
            attacker.join()
        equal(refused, [], f"32 honest clients beside {opened[0]} slow ones")
        with open(f"/proc/{s.process.pid}/status", encoding="ascii") as f:
            peak_kb = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
        check(peak_kb < 64 * 1024, "memory stays small", f"{peak_kb} kB")
    resource.setrlimit(resource.RLIMIT_NOFILE, most)


def addresses_share():
    """Who comes from an address of few connections keeps them when one of many has filled the table."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, most[1]), most[1]))
    with Server("--dir", page()) as s:
        with socket.create_connection(("127.0.0.1", s.port), source_address=("127.0.0.9", 0)) as few:
            few.sendall(b"GET / HTTP/1.1\r\n")
            many = [s.connect() for _ in range(700)]
            equal(s.get("/").status, 200, "the table is full and somebody comes")
            few.sendall(f"Host: {s.host}\r\nConnection: close\r\n\r\n".encode())
            equal(Reply(read_all(few)).body, HTML.encode(), "the one that came first is still there")
        for c in many:
            c.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, most)


def slow_reader():
    """Who takes a reply slowly gets all of it."""
    folder = page()
    body = os.urandom(1 << 20)
    write(os.path.join(folder, "large.bin"), body)
    with Server("--dir", folder) as s, socket.socket() as c:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.connect(("127.0.0.1", s.port))
        c.sendall(f"GET /large.bin HTTP/1.1\r\nHost: {s.host}\r\nConnection: close\r\n\r\n".encode())
        for _ in range(3):
            time.sleep(1)
            equal(s.get("/").status, 200, "others are served meanwhile")
        data = read_all(c)
        check(data.partition(b"\r\n\r\n")[2] == body, "a reply that is taken slowly",
              f"{len(data)} bytes")


def clients_at_once():
    with Server("--dir", page()) as s:
        wrong = []

        def ask():
            for _ in range(50):
                if s.get("/").body != HTML.encode():
                    wrong.append(1)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        equal(len(wrong), 0, "400 requests from eight clients")
        with s.connect() as c:
            one = f"GET /assets/app.js HTTP/1.1\r\nHost: {s.host}\r\n\r\n".encode()
            c.sendall(one * 3)
            data = b""
            while data.count(b"export {};") < 3:
                part = c.recv(65536)
                if not part:
                    break
                data += part
        equal(data.count(b"HTTP/1.1 200"), 3, "three requests on one connection")


def many_on_one():
    """Requests that were sent before the replies came: each has its reply, in order."""
    with Server("--dir", page()) as s, s.connect() as c:
        paths = ["/", "/assets/app.js", "/none", "/empty.txt"] * 100
        heads = [f"GET {p} HTTP/1.1\r\nHost: {s.host}\r\n\r\n" for p in paths]
        heads[-1] = heads[-1].replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
        sender = threading.Thread(target=c.sendall, args=("".join(heads).encode(),))
        sender.start()
        data = read_all(c)
        sender.join()
        equal([int(n) for n in re.findall(rb"HTTP/1\.1 (\d+) ", data)], [200, 200, 404, 200] * 100,
              "400 requests at once on one connection")


def no_descriptors_left():
    """With few descriptors the server makes room for who comes, and does not spin."""
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
    with Server("--dir", page(), preexec_fn=few) as s:
        idle = [s.connect() for _ in range(60)]
        time.sleep(0.5)
        before, begun = used(s.process), time.monotonic()
        time.sleep(2)
        took = time.monotonic() - begun
        check(used(s.process) - before < took / 2, "no spinning without descriptors",
              f"{used(s.process) - before} s of {took}")
        equal(s.get("/").status, 200, "and it serves beside them")
        for c in idle:
            c.close()


# ------------------------------------------------------------------------------------ bad options


def ports():
    for value in ("-1", "65536", "99999999999999999999", "80a", "", "8080.0", "nan"):
        expect(tinygpt("serve", "--port", value), 2, f"--port {value}", err="--port")
    folder = page()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        expect(tinygpt("serve", "--port", port, "--dir", folder), 2, "a port in use",
               err=[f"port {port} is in use", "--port 0"])
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", encoding="ascii") as f:
        if int(f.read()) <= 80 or not is_root():
            skip("a port that needs rights: every user may have it here")
            return
    for name in (".", folder):
        os.chmod(name, 0o755)
    expect(run([program_for_nobody(), "serve", "--port", "80", "--dir", folder],
               preexec_fn=as_nobody), 2, "a port that needs rights", err="from 1024 on")


def folders():
    os.mkdir("empty")
    write("file", "x")
    os.makedirs("deep/" + "/".join("abcdefghijkl"))
    write("deep/index.html", "x")
    for args, words in ((("--dir", "none"), "No such file"), (("--dir", "file"), "Not a directory"),
                        (("--dir", "empty"), "index.html"), (("--dir", ""), "--dir"),
                        (("--dir", "deep"), "deeper"), (("--dir",), "want a value"),
                        (("x",), "too many"), (("--dir", "a" * 5000), "")):
        expect(tinygpt("serve", "--port", "0", *args), 2, f"serve {args}"[:60],
               err=words)
    os.mkfifo("empty/pipe")
    os.symlink("/etc/passwd", "empty/link.txt")
    write("empty/index.html", "x")
    with Server("--dir", "empty/") as s:
        equal(s.told["files"], 1, "links and pipes are left out")
        equal(s.get("/link.txt").status, 404, "a link is not followed")


def endings():
    folder = page()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        p = start("serve", "--port", "0", "--dir", folder)
        line = p.stdout.readline().decode()
        check(re.search(r"http://127\.0\.0\.1:\d+/ .*Ctrl-C", line), "the address is told", line)
        port = int(re.search(r":(\d+)/", line).group(1))
        # A connection that is open, and goes on so that it is never idle, holds nothing up.
        with socket.create_connection(("127.0.0.1", port)) as c:
            c.sendall(b"GET / HTTP/1.1\r\nX: ")
            p.send_signal(getattr(signal, name))
            for _ in range(6000):
                if p.poll() is not None:
                    break
                with contextlib.suppress(OSError):
                    c.sendall(b"x")
                time.sleep(0.01)
            check(p.poll() is not None, f"{name} ends it at once")
        expect(finish(p), 130, name, err="Stopped")
        again = start("serve", "--port", str(port), "--dir", folder)
        check(again.stdout.readline(), "the same port at once again")
        again.send_signal(signal.SIGINT)
        expect(finish(again), 130, "and it ends")


main(files_and_types, no_other_path, methods, entity_tags, compressed_beside, built_in_page,
     same_headers_as_static_hosts, rebuilt_page, names, origins, host_and_origin, only_this_machine,
     broken_requests, strict_heads, large_heads, one_head_in_pieces, idle_connections, slow_heads,
     slow_clients_and_honest_ones, addresses_share, slow_reader, clients_at_once, many_on_one,
     no_descriptors_left, ports, folders, endings)
