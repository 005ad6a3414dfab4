#!/usr/bin/env python3
"""test_gpu.py - a GPU that is not there: what is missing is said, and the exit code is 1.

The adapter that is there computes on the CPU (Chromium's SwiftShader); it is named as what it is.
"""
import os
import shutil
import subprocess

import util
from util import SILENT, TINY, TOP, check, expect, main, run, text_file, tinygpt

SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json"
DAWN = os.path.join(TOP, ".cache", "webgpu", "libwebgpu_wrapper.so")


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


def no_library_anywhere():
    program = os.path.abspath("tinygpt-alone")
    shutil.copy(util.PROGRAM, program)
    r = run([program, "doctor", "--device", "webgpu"], env={"TG_WEBGPU_LIB": ""})
    expect(r, 1, "no library", err=("tools/setup.sh", r"\.cache/webgpu"))


def software_is_named():
    env = {"VK_ICD_FILENAMES": SWIFTSHADER, "TG_WEBGPU_LIB": DAWN}
    r = tinygpt("train", "--data", text_file(), *TINY, *SILENT[1:], "--steps", "2", "--device",
                "webgpu", env=env, timeout=120)
    expect(r, 0, "two steps on a software adapter")
    for word in ("SwiftShader", "software", "subgroups", "limits: ", DAWN):
        check(word in r.text + r.errors, f"banner: {word}", r.text[:500])


main(no_driver, no_such_library, another_library, an_old_library, no_library_anywhere,
     software_is_named)
