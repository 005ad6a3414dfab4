#!/usr/bin/env python3
"""test_serve.py - the web server of `tinygpt serve`: who may ask, what comes back, how it ends.

Requests are written to a socket byte for byte, since an HTTP library would put them right. The page
here is a small folder given with --dir; what is built into the program, if anything, is looked at
in one test. A program built without libmicrohttpd must say so, and all else is left out then.
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
                 "connect-src 'self' https:", "worker-src 'self'", "object-src 'none'",
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
        names = set(re.findall(rb'(?:src|href)="\.?/([^"]+)"', html.body))
        check(names, "the page names its parts")
        saved = 0
        for name in [b"", *sorted(names)]:
            path = "/" + name.decode()
            plain, packed = s.get(path), s.get(path, Accept_Encoding="gzip;q=0.8")
            brotli = s.get(path, Accept_Encoding="gzip, deflate, br")
            if path.endswith((".js", ".css")):
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


def slow_and_many():
    """Idle connections do not keep others out, and are closed after some ten seconds."""
    with Server("--dir", page()) as s:
        idle = [s.connect() for _ in range(100)]
        for c in idle[:50]:
            c.sendall(b"GET / HTTP/1.1\r\nHo")
        equal(s.get("/").status, 200, "a request beside a hundred idle connections")
        equal(select.select(idle, [], [], 0)[0], [], "idle connections that it has waited for")
        ended = sum(read_all(c) is not None for c in idle)
        equal(ended, 100, "idle connections are closed")
        for c in idle:
            c.close()


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


def no_descriptors_left():
    """With few descriptors the server refuses and goes on, without spinning."""
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
        for c in idle:
            c.close()
        while s.get("/").status != 200:  # as soon as it has seen that they have gone
            pass
        check(s.process.poll() is None, "and it serves again afterwards")


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


PROBE = tinygpt("serve", "--dir", "/nonexistent")

if "built without a web server" in PROBE.errors:
    def no_server():
        note("this program has no web server; only its message is tested")
        expect(PROBE, 1, "a program without the server", err="apt-get install libmicrohttpd-dev")

    main(no_server)
else:
    main(files_and_types, no_other_path, methods, entity_tags, compressed_beside, built_in_page,
         same_headers_as_static_hosts, names, origins, only_this_machine, broken_requests,
         slow_and_many, clients_at_once, no_descriptors_left, ports, folders, endings)
