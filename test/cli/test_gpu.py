#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gpu.py - a GPU that is not there, or that fails: what is missing is said, the exit code is 1.

The adapter that is there computes on the CPU (Chromium's SwiftShader); it is named as what it is.
Faults come from a library in front of the real one, test/gpu/faulty.c: where it can be, of
wgpu-native on lavapipe, which compiles in a tenth of the time.
"""
import json
import os
import shutil
import subprocess

import util
from util import SILENT, TINY, TOP, check, expect, main, run, text_file, tinygpt

SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json"
WEBGPU = os.path.join(TOP, ".cache", "webgpu")
DAWN = os.path.join(WEBGPU, "libwebgpu_wrapper.so")
NEWER = os.path.join(WEBGPU, "libwebgpu_dawn.so")
WGPU = os.path.join(WEBGPU, "libwgpu_native-release.so")
LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"


def refused(what, want, **env):
    """doctor --device webgpu in this environment: exit code 1, and the message."""
    expect(tinygpt("doctor", "--device", "webgpu", env=env), 1, what, err=want)


def no_driver():
    refused("no driver", "libvulkan1", VK_ICD_FILENAMES="/nonexistent.json", TG_WEBGPU_LIB=DAWN)


def no_such_library():
    refused("no such library", "TG_WEBGPU_LIB: want a WebGPU library",
            TG_WEBGPU_LIB="/nonexistent.so")


def another_library():
    refused("a library without the functions", "want the function wgpuCreateInstance",
            TG_WEBGPU_LIB="libm.so.6")


def an_old_library():
    """It has some functions of webgpu.h, and lacks a later one."""
    with open("old.c", "w", encoding="utf-8") as f:
        f.write("void wgpuCreateInstance(void) {}\nvoid wgpuInstanceRequestAdapter(void) {}\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "old.so", "old.c"], check=True)
    refused("an old library", "want the function wgpuInstanceProcessEvents",
            TG_WEBGPU_LIB=os.path.abspath("old.so"))


def another_version():
    """All functions are there, and their structures laid out otherwise: called, they would crash."""
    for name, source in (("wgpu-native", "unsigned wgpuGetVersion(void) { return 27u << 24; }"),
                         ("Dawn", "void wgpuAdapterEnumerateFeatures(void) {}")):
        with open("other.c", "w", encoding="utf-8") as f:
            f.write(source)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", "other.so", "other.c"], check=True)
        refused(f"another version of {name}", "want wgpu-native 29 or later, or a Dawn",
                TG_WEBGPU_LIB=os.path.abspath("other.so"))


def no_library_anywhere():
    program = os.path.abspath("tinygpt-alone")
    shutil.copy(util.PROGRAM, program)
    r = run([program, "doctor", "--device", "webgpu"], env={"TG_WEBGPU_LIB": ""})
    expect(r, 1, "no library", err=("tools/setup.sh", r"\.cache/webgpu"))


def faulty(library):
    """A library with a fault, in front of another one."""
    path = os.path.join(util.root, "faulty-" + os.path.basename(library))
    if not os.path.exists(path):
        subprocess.run(["gcc", "-shared", "-fPIC", "-isystem", WEBGPU, "-o", path,
                        os.path.join(TOP, "test", "gpu", "faulty.c"), "-Wl,--no-as-needed",
                        library], check=True)
    return path


def on_gpu(*args, fault="", library=DAWN, **options):
    """Training of the smallest model, with a fault. wgpu-native ends the process that loses a device."""
    dawn = not fault or fault.startswith("lose")
    env = {"VK_ICD_FILENAMES": SWIFTSHADER if dawn else LAVAPIPE, "TG_FAULT": fault,
           "TG_WEBGPU_LIB": faulty(DAWN if dawn else WGPU) if fault else library}
    return tinygpt("train", "--data", text_file(), *TINY, *SILENT[1:], "--device", "webgpu", *args,
                   env=env, timeout=600, **options)


def software_is_named():
    """By the newer Dawn, which says why it multiplies without matrices there."""
    r = on_gpu("--steps", "2", library=NEWER)
    expect(r, 0, "two steps on a software adapter")
    for word in ("SwiftShader", "software", "subgroups", "limits: ", NEWER,
                 "lever subgroup_matrices off: without f16 there are none"):
        check(word in r.text + r.errors, f"banner: {word}", r.text[:500])
    expect(tinygpt("bench", "decode", "--preset", "tiny", "--device", "webgpu", timeout=600,
                   env={"VK_ICD_FILENAMES": SWIFTSHADER, "TG_WEBGPU_LIB": DAWN}), 2,
           "a software adapter is not timed", err="software")


def an_adapter_that_is_too_small():
    expect(on_gpu("--steps", "2", fault="limits"), 1, "four storage buffers",
           err="want 8 storage buffers of .*, have 4, .*driver")


def nothing_is_compiled_twice():
    """What the self-test has compiled is what plans run."""
    expect(on_gpu("--steps", "2", fault="twice"), 0, "two steps, each shader compiled once")


def nothing_computed_is_no_result():
    """Zeros from the first step on: none is a loss, and no file holds them."""
    expect(on_gpu("--steps", "20", "--log", "log.jsonl", fault="drop=1"), 1, "nothing computed",
           err="want 2 submits done and reading 1, have 0 and 0: the driver has dropped work")
    log = util.read("log.jsonl") if os.path.exists("log.jsonl") else b""
    check(b'"loss"' not in log, "no step in the log", log)
    check(not os.path.exists("run.tinygpt"), "nothing was saved", os.listdir("."))


def a_device_that_is_lost_again_and_again():
    """Three times, and the CPU ends what was begun: within what parity allows, the same curve.

    The self-test takes some forty submits: a device that is lost in it is never used."""
    want = tinygpt("train", "--data", text_file(), *TINY, *SILENT[1:], "--steps", "30", "--log",
                   "want.jsonl")
    expect(want, 0, "30 steps on the CPU")
    # Each device compiles anew, which takes it less without subgroups and their self-test.
    have = on_gpu("--steps", "30", "--log", "have.jsonl", "--levers", "-subgroups", fault="lose=80")
    expect(have, 0, "30 steps, devices lost", err=("the device was lost", "goes back from step",
                                                   "the CPU goes on: .*three times"))
    losses = [{row["step"]: row["loss"] for row in map(json.loads, util.read(log).splitlines())
               if "loss" in row} for log in ("want.jsonl", "have.jsonl")]
    check(losses[0].keys() == losses[1].keys() and len(losses[0]) >= 2 and
          all(abs(losses[1][step] / loss - 1) < 1e-5 for step, loss in losses[0].items()),
          "the same losses", losses)


main(no_driver, no_such_library, another_library, an_old_library, another_version,
     no_library_anywhere, software_is_named, an_adapter_that_is_too_small,
     nothing_is_compiled_twice, nothing_computed_is_no_result, a_device_that_is_lost_again_and_again)
