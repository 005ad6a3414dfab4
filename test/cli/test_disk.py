#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_disk.py - full disks, size limits, missing permission, folders and texts that vanish.

The promise: whatever happens to a save, the one before it is whole and can be resumed, the message
names the file and the reason, and what can be known before the first step is said before it.

A full disk is a small tmpfs in a mount namespace of this process, so nothing is left mounted; it
takes root. Everywhere else RLIMIT_FSIZE makes files that cannot grow: a write is cut short at the
limit and the next one fails.
"""
import ctypes
import ctypes.util
import os
import resource
import shutil
import signal
import subprocess

from util import (SILENT, TINY, as_nobody, check, equal, expect, finish, freeze, freeze_when, is_root,
                  main, program_for_nobody, read, read_step, resume, run, same_run, skip, start,
                  step_of, text_file, thaw, tinygpt, train, whole, write)

CLONE_NEWNS = 0x00020000
SAVE_BYTES = 100000  # of TINY, roughly: twelve bytes a parameter and the header


def small_disk(megabytes):
    """Mounts a tmpfs at ./disk, for this process and its children. False if that can't be."""
    os.mkdir("disk")
    if not is_root():
        return False
    libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        return False
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return (subprocess.call(["mount", "--make-rprivate", "/"], **quiet) == 0 and
            subprocess.call(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", "disk"],
                            **quiet) == 0)


def fill(path):
    """Takes all the room there is."""
    with open(path, "wb", buffering=0) as f:
        try:
            while f.write(b"\0" * 4096):
                pass
        except OSError:
            pass


def fill_between_saves(process):
    """Fills the disk of a running program, and leaves the program frozen.

    A save that was under way would end well and give back the room of the one it replaces.
    """
    freeze_when(process, lambda: not any(".tmp" in name for name in os.listdir("disk")))
    fill("disk/ballast")


def limit_files(n_bytes):
    """For preexec_fn: no file can grow beyond that; the signal is as it is by default."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    return limit


# --------------------------------------------------------------------------------------- full disk


def disk_fills_up():
    """Full in the middle of a run: a warning, the old save stays, and room helps the next one."""
    if not small_disk(2):
        return skip("a full disk: a small tmpfs could not be mounted (want root)")
    try:
        return run_on_small_disk("disk/a.tinygpt")
    finally:
        subprocess.call(["umount", "-l", "disk"], stderr=subprocess.DEVNULL)


def run_on_small_disk(out):
    options = ("--save-every", "1", "--steps", "5000", "--eval-every", "0", "--out", out, "--json")

    p = start("train", "--data", text_file(), *TINY, *SILENT, *options)
    read_step(p, 3)
    fill_between_saves(p)
    saved_at = step_of(out)
    check(saved_at >= 2, "the save before the disk was full is still there", str(saved_at))
    thaw(p)
    row = read_step(p, saved_at + 20)  # counted from here: earlier steps may wait in the pipe
    freeze(p)
    whole(out, "while the disk is full")
    full_at = step_of(out)
    equal(full_at, saved_at, "the save while the disk is full")
    os.remove("disk/ballast")
    thaw(p)
    read_step(p, row["step"] + 100)
    p.send_signal(signal.SIGINT)
    r = finish(p)
    expect(r, 130, "a run whose disk was full for a while",
           err=["could not be saved", "[Nn]o space left", "the save before is untouched"])
    check(step_of(out) > full_at, "it saves again when there is room")
    whole(out, "after the disk was full")

    p = start("train", "--data", text_file(), *SILENT, "--resume", out, "--save-every", "1",
              "--json", "--stop-on-save-error")
    read_step(p, step_of(out) + 3)
    fill_between_saves(p)
    saved_at = step_of(out)
    thaw(p)
    r = finish(p)
    expect(r, 1, "--stop-on-save-error", err="[Nn]o space left", out='"reason":"failed"')
    check(saved_at < r.json_lines()[-1]["step"] <= saved_at + 3, "it stops at once")
    whole(out, "after --stop-on-save-error")
    before = read(out)

    # From here on the disk stays full.
    expect(resume(out, "--steps", step_of(out) + 3), 2, "resume on a full disk",
           err=["want .* on the disk", "have .* free"])
    expect(train("--steps", "3", "--out", "disk/new.tinygpt"), 2, "a run on a full disk",
           err=["want .* on the disk|No space left"])
    r = resume(out, "--steps", step_of(out) + 3, "--force", "--json")
    expect(r, 1, "--force on a full disk", err="[Nn]o space left")
    check(len(r.json_lines()) == 4, "the forced run makes its steps")
    equal(read(out), before, "the old save")
    expect(tinygpt("convert", out, "disk/small.tinygpt", "--dtype", "int4"), 1,
           "convert onto a full disk", err=["small.tinygpt", "[Nn]o space left"])
    expect(tinygpt("corpus", "stories", "--bytes", "5M", "--out", "disk/s.txt"), 1,
           "stories onto a full disk", err=["disk/s.txt", "[Nn]o space left"])
    with open("disk/printed", "wb") as f:
        expect(tinygpt("dump", out, stdout=f), 1, "printing onto a full disk",
               err="standard output could not take all")
    os.remove("disk/printed")
    equal(sorted(os.listdir("disk")), ["a.tinygpt", "a.tinygpt.prev", "ballast"],
          "files on the full disk")
    os.remove("disk/ballast")
    target = step_of(out) + 3
    expect(resume(out, "--steps", target), 0, "resume when there is room")
    equal(step_of(out), target, "steps of the resumed run")


def log_and_picture_fill_up():
    """A log or picture that cannot be written ends in exit 1, and the run is saved all the same."""
    r = train("--steps", "5", "--log", "/dev/full", "--out", "a.tinygpt")
    expect(r, 1, "--log /dev/full", err="/dev/full cannot be written any more")
    equal(step_of("a.tinygpt"), 5, "the run without its log")
    # The limit lies above the save (3,064 parameters) and below the log of 600 lines.
    r = tinygpt("train", "--data", text_file(), "--layers", "1", "--width", "8", "--heads", "1",
                "--ctx", "16", "--batch", "8", *SILENT, "--steps", "600", "--eval-every", "0",
                "--log", "log", "--out", "b.tinygpt", preexec_fn=limit_files(80000))
    expect(r, 1, "a log that reaches the size limit", err=["log cannot be written", "too large"])
    equal(step_of("b.tinygpt"), 600, "the run whose log was cut")
    kept = read("log").splitlines()
    check(len(kept) > 400 and all(line.endswith(b"}") for line in kept[:-1]), "the log so far")
    expect(train("--steps", "5", "--svg", "none/a.svg", "--out", "c.tinygpt"), 2,
           "--svg in a missing folder", err="none")
    expect(train("--steps", "5", "--log", "none/log", "--out", "c.tinygpt"), 2,
           "--log in a missing folder", err="none/log")
    equal(os.path.exists("c.tinygpt"), False, "both were noticed before the first step")


# ------------------------------------------------------------------------------------- size limits


def saves_that_are_cut_short():
    """A save that hits a size limit half way leaves the one before, and no temporary file."""
    expect(train("--steps", "4", "--out", "a.tinygpt"), 0, "a run")
    before = read("a.tinygpt")
    for limit in (0, 1, 4096, 65536, len(before) - 1):
        r = resume("a.tinygpt", "--steps", "8", preexec_fn=limit_files(limit))
        check(r.code in (1, 2), f"a save limited to {limit} bytes", f"exit code {r.code}", r.argv)
        expect(r, r.code, f"the message, limited to {limit}", err=["a.tinygpt", "too large"])
        equal(read("a.tinygpt"), before, f"the save before, limited to {limit}")
        expect(tinygpt("convert", "a.tinygpt", "b.tinygpt", preexec_fn=limit_files(limit)), 1,
               f"convert limited to {limit}", err=["b.tinygpt", "too large"])
    # The best weights and the picture may be small enough; each keeps the one before it.
    equal(sorted(os.listdir(".")), ["a.tinygpt", "a.tinygpt.best", "a.tinygpt.best.prev",
                                    "a.tinygpt.svg", "a.tinygpt.svg.prev"],
          "failed saves leave no files")
    expect(resume("a.tinygpt", "--steps", "8"), 0, "resume without a limit")
    expect(train("--steps", "8", "--out", "c.tinygpt"), 0, "an unbroken run")
    equal(step_of("a.tinygpt"), 8, "steps after failed saves")


def a_long_run_outlives_its_saves():
    """Saves may fail for a while; --stop-on-save-error ends the run at the first one."""
    for args, done in (((), 12), (("--stop-on-save-error",), 4)):
        r = train("--steps", "12", "--save-every", "4", "--eval-every", "0", "--out", "a.tinygpt",
                  "--json", *args, preexec_fn=limit_files(SAVE_BYTES // 2))
        expect(r, 1, f"saves that fail {' '.join(args)}", err="step 4 could not be saved")
        equal(r.json_lines()[-1]["step"], done, f"steps {' '.join(args)}")
        equal(r.json_lines()[-1]["out"], None, "no file is claimed")
    equal([n for n in os.listdir(".") if "tmp" in n or n == "a.tinygpt"], [], "files that are left")


# ------------------------------------------------------------------------------------- permissions


def places_that_take_no_file():
    """Found before the first step: exit 2 and the reason, and nothing is written."""
    os.mkdir("folder")
    os.mkfifo("pipe")
    os.symlink("loop", "loop")
    os.symlink("nowhere/x", "dangling")
    write("plain", "x")
    before = sorted(os.listdir("."))
    for out, why in (("none/a.tinygpt", "none does not exist"), ("folder", "have a folder"),
                     ("folder/", "folder"), ("plain/a.tinygpt", "plain"), ("pipe", "regular file"),
                     ("/dev/full", "regular file"), ("/dev/null", "regular file"),
                     ("/proc/a.tinygpt", "proc"), ("loop/a", "loop"), ("dangling", "dangling"),
                     ("x" * 300, "too long"), ("d/" * 3000 + "a", "too long|at most")):
        r = train("--steps", "3", "--out", out, "--json")
        expect(r, 2, f"--out {out[:40]}", err=["--out", why])
        equal(list(r.json()), ["error"], f"no step is made for --out {out[:40]}")
    expect(train("--steps", "3", "--out", ""), 2, "an empty --out", err="--out")
    equal(sorted(os.listdir(".")), before, "nothing was written")
    os.symlink("real.tinygpt", "link.tinygpt")
    write("real.tinygpt", "old")
    expect(train("--steps", "3", "--out", "link.tinygpt"), 2, "something else behind a link",
           err=["link.tinygpt", "--force"])
    expect(train("--steps", "3", "--out", "link.tinygpt", "--force"), 0, "--out through a link")
    check(os.path.islink("link.tinygpt") and step_of("real.tinygpt") == 3,
          "the file behind the link is the one that is replaced")
    expect(train("--steps", "3", "--out", "tiny run ü.tinygpt"), 0,
           "a name with blanks and accents")


def names_that_collide():
    """No output may land on an input, nor on another output: refused before anything is touched."""
    expect(train("--steps", "3", "--out", "a.tinygpt"), 0, "a run")
    shutil.copy(text_file(), "text.txt")
    os.link("text.txt", "hard")
    os.symlink("text.txt", "soft")
    new, old = ("--data", "text.txt", *TINY), ("--data", "text.txt")
    for args in ((*new, "--out", "text.txt"), (*new, "--out", "soft"), (*new, "--log", "text.txt"),
                 (*new, "--log", "hard"), (*new, "--svg", "text.txt"), (*new, "--svg", "soft"),
                 (*new, "--svg", "b", "--log", "b"), (*new, "--out", "b", "--log", "b"),
                 (*new, "--out", "b", "--svg", "b"), (*new, "--out", "b", "--log", "b.best"),
                 (*old, "--from", "a.tinygpt", "--log", "a.tinygpt"),
                 (*old, "--resume", "a.tinygpt", "--log", "a.tinygpt"),
                 (*old, "--resume", "a.tinygpt", "--svg", "a.tinygpt")):
        before = {name: read(name) for name in os.listdir(".")}
        r = tinygpt("train", *args, *SILENT, "--steps", "5", "--save-every", "1")
        after = {name: read(name) for name in os.listdir(".")}
        changed = [n for n in {**before, **after} if before.get(n) != after.get(n)]
        check(r.code == 2 and r.err and not changed, f"train {' '.join(args[-4:])}",
              f"want exit code 2 and a message, have {r.code}, {r.errors!r}; changed: {changed}",
              r.argv)
        for name in changed:
            if name in before:
                write(name, before[name])
            else:
                os.remove(name)


def no_permission():
    """Files and folders of another user: exit 2, the name and the reason."""
    expect(train("--steps", "3", "--out", "a.tinygpt"), 0, "a run")
    program = program_for_nobody()
    shutil.copy(text_file(), "text.txt")
    shutil.copy("a.tinygpt", "secret.tinygpt")
    shutil.copy("text.txt", "secret.txt")
    os.mkdir("locked")
    shutil.copy("a.tinygpt", "locked/a.tinygpt")
    for name in ("secret.tinygpt", "secret.txt"):
        os.chmod(name, 0)
    os.symlink("locked/a.tinygpt", "link.tinygpt")
    os.chmod("locked", 0o555)
    os.chmod(".", 0o777)

    def nobody(*args):
        return run([program, *args], preexec_fn=as_nobody)

    new = ("train", *TINY, *SILENT, "--steps", "2", "--data")
    denied = "[Pp]ermission denied"
    for args, name in (((*new, "secret.txt", "--out", "n.tinygpt"), "secret.txt"),
                       ((*new, "text.txt", "--out", "locked/n.tinygpt"), "locked/n.tinygpt"),
                       ((*new, "text.txt", "--out", "n.tinygpt", "--log", "locked/log"),
                        "locked/log"),
                       (("train", "--data", "text.txt", "--resume", "secret.tinygpt"),
                        "secret.tinygpt"),
                       (("train", "--data", "text.txt", "--resume", "locked/a.tinygpt", *SILENT),
                        "locked/a.tinygpt"),
                       (("info", "secret.tinygpt"), "secret.tinygpt"),
                       (("verify", "secret.tinygpt"), "secret.tinygpt"),
                       (("sample", "secret.tinygpt"), "secret.tinygpt"),
                       (("eval", "a.tinygpt", "--data", "secret.txt"), "secret.txt"),
                       (("sample", "a.tinygpt", "--file", "secret.txt"), "secret.txt"),
                       (("convert", "a.tinygpt", "locked/b.tinygpt"), "locked/b.tinygpt"),
                       (("convert", "secret.tinygpt", "b.tinygpt"), "secret.tinygpt"),
                       ((*new, "text.txt", "--out", "link.tinygpt"), "link.tinygpt"),
                       (("corpus", "stories", "--out", "locked/s.txt"), "locked/s.txt")):
        expect(nobody(*args), 2, f"{args[0]} without permission", err=[name, denied])
    equal(os.path.exists("n.tinygpt") or os.path.exists("b.tinygpt"), False, "nothing was written")
    expect(nobody("doctor", "--quick", "--dir", "locked"), 1, "doctor in a locked folder",
           out="FAIL +.*locked")
    expect(nobody(*new, "text.txt", "--out", "n.tinygpt"), 0, "a run with permission")
    os.chmod("a.tinygpt", 0o600)
    expect(resume("a.tinygpt", "--steps", "5"), 0, "resume of a private file")
    equal(os.stat("a.tinygpt").st_mode & 0o777, 0o600, "a private file stays private")


# ---------------------------------------------------------------------------- what goes away midway


def the_folder_goes_away():
    """The output folder is removed during the run: warnings, exit 1, no crash."""
    os.mkdir("gone")
    p = start("train", "--data", text_file(), *TINY, *SILENT, "--steps", "6000", "--save-every",
              "2000", "--out", "gone/a.tinygpt", "--json")
    read_step(p, 2)
    freeze(p)
    early = "a.tinygpt" in os.listdir("gone")
    shutil.rmtree("gone")
    thaw(p)
    r = finish(p)
    check(not early, "the folder went before the first save")
    expect(r, 1, "a folder that goes away", err=["could not be saved", "gone"])
    equal(r.json_lines()[-1]["step"], 6000, "the steps were made")


def the_text_goes_away():
    """A text that shrinks under the run: exit 3, the last step is saved, and can be resumed."""
    shutil.copy(text_file(), "text.txt")
    new = ("--eval-every", "0", "--save-every", "0", "--steps", "4000")
    expect(tinygpt("train", "--data", "text.txt", *TINY, *SILENT, *new, "--out", "calm.tinygpt"), 0,
           "an undisturbed run")
    p = start("train", "--data", "text.txt", *TINY, *SILENT, *new, "--out", "a.tinygpt", "--json")
    read_step(p, 5)
    freeze(p)
    os.truncate("text.txt", 0)
    thaw(p)
    r = finish(p)
    expect(r, 3, "a text that was cut",
           err=["text.txt", "Stopped: step [0-9]+ is saved", "--resume"],
           out='"reason":"stopped"')
    whole("a.tinygpt", "after the text was cut")
    equal(step_of("a.tinygpt"), r.json_lines()[-1]["step"], "the last whole step is saved")
    expect(tinygpt("train", "--data", "text.txt", *SILENT, "--resume", "a.tinygpt"), 2,
           "resume with the cut text", err="text")
    shutil.copy(text_file(), "text.txt")
    expect(tinygpt("train", "--data", "text.txt", *SILENT, "--resume", "a.tinygpt"), 0,
           "resume with the text restored")
    same_run("calm.tinygpt", "a.tinygpt", "a text that was away for a while")


def the_file_itself_is_replaced():
    """Somebody else's bytes at FILE: the next save replaces them; a folder there is refused."""
    p = start("train", "--data", text_file(), *TINY, *SILENT, "--steps", "1000000", "--out",
              "a.tinygpt", "--save-every", "0", "--eval-every", "0", "--json")
    read_step(p, 2)
    os.mkdir("a.tinygpt")
    p.send_signal(signal.SIGINT)
    expect(finish(p), 1, "a folder where the save should go", err=["a.tinygpt", "folder|directory"])
    equal([n for n in os.listdir(".") if "tmp" in n], [], "temporary files")


main(disk_fills_up, log_and_picture_fill_up, saves_that_are_cut_short,
     a_long_run_outlives_its_saves, places_that_take_no_file, names_that_collide, no_permission,
     the_folder_goes_away, the_text_goes_away, the_file_itself_is_replaced)
