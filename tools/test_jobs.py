# SPDX-License-Identifier: Apache-2.0
"""test_jobs.py - the table of what run_tests.py runs.

    builds   program, modules, package and page; then what is made with sanitizers, and for ARM
    quick    unit tests, and ops on every instruction set: no set-up, no model files
    full     + command line, GPU on two adapters, modules, package, page in Chromium, sanitizers,
             ARM, example, check
    long     + fuzzing, 10,000 kills, long trainings, the page's main journeys in Firefox

Lists are those of the sources: a program that was not built, or one left from another branch, is
not taken for a test.
"""
import glob
import os
import subprocess

from run_tests import Job

WEBGPU = os.path.abspath(".cache/webgpu")
MODELS = ("SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf", "minilm.zip")
NODE = os.path.abspath(".cache/node24/bin/node")
SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json"
LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"
# Of real models: without the set-up there are none.
WITH_MODELS = ("test_llama_cpp", "test_tok_models", "test_tok_write")
# Thousands of training steps, or hundreds of tokens of real models, say nothing more about memory
# than fifty: under sanitizers those are for "long".
TOO_LONG_SANITIZED = ("test_parity", "test_llama_cpp")
SEVERAL_THREADS = ("test_base_thread", "test_threads")
# Pages that measure time. (The benchmark's contestants differ by a factor of three, and take turns.)
TIMED_PAGES = ("hidden", "paint")
# Journeys in Firefox, where two of seven once waited in vain for a page beside busy jobs (pitfalls.md):
# what may fail for no fault of a change gates none. And pages that ask nothing of Chromium alone,
# such as a quota, a download's event or other colours.
LONG_PAGES = ("firefox",)
FIREFOX_PAGES = ("train",)
# The longest, in seconds of a quiet core: the longest first is how a clean clone, which has measured
# nothing, keeps all cores busy to the end.
SECONDS = {
    "package": 140, "page: gpu": 130, "test_gpu.py": 80, "gpu_test, dawn": 85, "test_readme.py": 79,
    "test_levers.py": 66, "op_test webgpu, dawn": 70, "page: kept": 67, "levers_test, dawn": 64,
    "page: lost": 64, "gpu_test, wgpu": 35, "page: train": 54, "page: hosting": 53,
    "ARM op_test": 50, "page: chat": 50, "check": 48, "levers_test, wgpu": 46, "test_files.py": 44,
    "page: chat_trouble": 41, "modules: train": 38, "test_bad_input.py": 36, "page: look": 36,
    "page: lacking": 35, "page: files": 30, "asan test_jobs": 30, "page: hidden": 28,
    "test_parity": 28, "asan test_tok_long": 27, "op_test webgpu, levers off, wgpu": 30,
    "op_test webgpu, wgpu": 24, "test_json_keys.py": 23, "drop_test": 22, "test_faults.py": 21,
    "test_train_cli.py": 21, "models_test, dawn": 27, "page: store": 20, "test_llama_cpp": 18,
    "test_kill.py": 18, "examples": 17, "test_disk.py": 17, "op_test webgpu, the least adapter": 17,
    "test_signals.py": 15, "test_chat.py": 14, "asan op_test gradients": 14,
    "asan test_lm_faults": 13, "test_jobs": 13, "page: bench": 11, "test_tok_long": 9,
    "asan test_io_v3": 8,
}
# What a library has compiled is kept for nobody, but where a test is of just that.
os.environ["TG_GPU_CACHE"] = "off"


def fail(name, text):
    """A job that fails with a text: what the table needs is not there."""
    return Job(name, ["sh", "-c", f'echo "FAIL {text}"; echo "0 passed, 1 failed"; exit 1'])


def names(pattern, but=()):
    """Base names of the files of a pattern, without endings."""
    found = sorted(os.path.basename(p).split(".")[0] for p in glob.glob(pattern))
    return [n for n in found if n not in but]


def per_line(title, pattern, job):
    """A job for each file of a pattern, or one that says that there is none."""
    return [job(p) for p in sorted(glob.glob(pattern))] or [fail(title, f"no file {pattern}")]


def make(name, *words, makes, needs=(), **more):
    return Job(name, ["make", "--no-print-directory", "-s", *words], cores=99, limit_s=3600,
               makes=makes, needs=needs, **more)


def builds(mode, build):
    fixtures = Job("fixtures", ["python3", "tools/oracle/fixtures.py", f"{build}/fixtures"],
                   makes=[f"{build}/fixtures"])
    if mode == "quick":
        return [fixtures]
    unit = [j.command[0] for j in unit_tests("build/asan")]
    # Of pages and kills: others are content with some of them.
    if mode == "long":
        os.environ["TG_TEST_LONG"] = "1"
    # Also of every make that a test starts: what is compiled in another way is compiled anew.
    os.environ["WERROR"] = "-Werror"
    return [
        fixtures,
        make("build", f"BUILD={build}", "build", "tests", "wasm", "web-lib",
             "web", f"{build}/test/wasm_native",
             makes=[f"{build}/tinygpt", f"{build}/test/op_test", f"{build}/test/gpu_test",
                    f"{build}/test/libshared.so", "web/dist/index.html", "web/lib/index.js"]),
        # Again, since the page is in it now.
        make("build with the page", f"BUILD={build}", "build",
             makes=[f"{build}/tinygpt"]),
        make("build with asan", "asan", makes=["build/asan/test/op_test", *unit]),
        make("build with tsan", "tsan", makes=[f"build/tsan/test/{n}" for n in SEVERAL_THREADS]),
        *([make("build with integer sanitizers", "intsan", makes=[
            j.command[0] for j in integer_tests()])] if mode == "long" else []),
        *([make("build with fuzzing", f"BUILD={build}", "fuzz-targets", makes=[
            f"{build}/fuzz/{n}" for n in names("test/fuzz/fuzz_*.c")])] if mode == "long" else []),
        # Intrinsics and the order of sums are what they are at any -O, and -O1 takes a third of -O3.
        make("build for ARM", "BUILD=build/neon", "OPT=-O1", "EXTRA=-g0 -DTG_FLOAT_REFS",
             "CC=aarch64-linux-gnu-gcc", "AR=aarch64-linux-gnu-ar",
             "build/neon/test/op_test", "build/neon/test/simd_test",
             makes=["build/neon/test/op_test", "build/neon/test/simd_test"]),
    ]


def missing():
    """A failed job for each thing that the set-up should have brought."""
    found = []
    for tool in ("chromium", "firefox-esr", "clang-19", "clang-format-19", "wasm-ld-19",
                 "qemu-aarch64", "aarch64-linux-gnu-gcc", "npm", "pkg-config", "readelf"):
        if not any(os.access(os.path.join(p, tool), os.X_OK)
                   for p in os.environ["PATH"].split(":")):
            found.append(tool)
    for path in (NODE, SWIFTSHADER, LAVAPIPE, "/usr/include/cmocka.h", ".cache/binaryen/wasm-opt",
                 f"{WEBGPU}/webgpu.h",
                 f"{WEBGPU}/libwebgpu_dawn.so", f"{WEBGPU}/libwebgpu_wrapper.so",
                 f"{WEBGPU}/libwgpu_native-release.so", *(f".cache/models/{m}" for m in MODELS)):
        if not os.path.exists(path):
            found.append(path)
    return [fail(f"set-up: {f}", f"{f} is missing: tools/setup.sh gets it") for f in found]


def told(build, option):
    """Lines that doctor prints; None if it does not end as it should, or prints none."""
    r = subprocess.run([f"{build}/tinygpt", "doctor", option], capture_output=True, text=True,
                       timeout=60, check=False)
    lines = r.stdout.split()
    return lines if r.returncode == 0 and lines else None


def unit_tests(folder, label="", but=(), **more):
    """Those of test/unit, and the corpora of test/fuzz, replayed."""
    def job(name):
        return Job(f"{label}{name}", [f"{folder}/test/{name}"],
                   holds=(f"files of {name}",), **more)

    found = []
    for pattern, begins in (("test/unit/*/*.c", ""), ("test/fuzz/fuzz_*.c", "test_")):
        some = [job(begins + n) for n in names(pattern, but)]
        found += some or [fail(f"{label}unit tests", f"no file {pattern}")]
    return found


def integer_tests():
    """make intsan: of base, io and tok."""
    return [j for j in unit_tests("build/intsan", "intsan ", needs=("build with integer sanitizers",))
            if j.name.startswith(tuple(f"intsan test_{w}" for w in ("base_", "io_", "tok", "fuzz_")))]


def op_tests(folder, isas, label="", **more):
    """Every variant of every op that an instruction set has: what levers choose is among them."""
    return [
        Job(f"{label}simd_test", [f"{folder}/test/simd_test"], **more),
        *(Job(f"{label}op_test {i}", [f"{folder}/test/op_test", "--isa", i], **more) for i in isas),
        Job(f"{label}op_test gradients", [f"{folder}/test/op_test", "--gradients"], **more),
    ]


def on(adapter, **more):
    """The environment of an adapter that computes on the CPU: Dawn on SwiftShader, wgpu on lavapipe."""
    library = {"dawn": "libwebgpu_wrapper.so", "wgpu": "libwgpu_native-release.so"}[adapter]
    return {"VK_ICD_FILENAMES": SWIFTSHADER if adapter == "dawn" else LAVAPIPE,
            "TG_WEBGPU_LIB": f"{WEBGPU}/{library}", **more}


def gpu_tests(mode, build):
    def job(name, env, program, *words):
        return Job(name, [f"{build}/test/{program}", *words], env=env,
                   limit_s=1200, holds=(f"files of {program}",))

    # With devices that stay, and what they have compiled.
    shared = {**on("dawn"), "TG_WEBGPU_LIB": os.path.abspath(f"{build}/test/libshared.so")}
    # SwiftShader compiles a shader for seconds, ten minutes in all. So Dawn runs one size of each
    # kind of shader, and what differs by the driver; lavapipe runs every size, what is of the
    # engine alone (batches, slices, drafts), and merges between guards. Dawn compiles those in
    # op_test and trains with them in gpu_test. A device of Dawn is lost three times in test_gpu.py.
    brief = {"op_test": ["--one-size"], "models_test": ["same_*"],
             "gpu_test": ["*", "survives_lost_devices"]} if mode != "long" else {}
    found = []
    for adapter in ("dawn", "wgpu"):
        env = on(adapter)
        words = brief if adapter == "dawn" else {}
        found += [
            job(f"op_test webgpu, {adapter}", env, "op_test", "--device", "webgpu",
                *words.get("op_test", [])),
            # Naga's half a minute shows what they compute; Tint compiles them in levers_test, too.
            *([job(f"op_test webgpu, levers off, {adapter}", env, "op_test", "--device", "webgpu",
                   "--levers", "-subgroups,-vec4_loads")]
              if adapter == "wgpu" or mode == "long" else []),
            *([job(f"merge_test, {adapter}", env, "merge_test")]
              if adapter == "wgpu" or mode == "long" else []),
            job(f"gpu_test, {adapter}", env, "gpu_test", *words.get("gpu_test", [])),
            job(f"models_test, {adapter}", env, "models_test", *words.get("models_test", [])),
            job(f"levers_test, {adapter}", shared if adapter == "dawn" else env, "levers_test"),
        ]
    # What an adapter may lack: each feature, and all beyond the limits that every one has. A run
    # through all shaders shows what that changes; profiles alone use a feature.
    least = on("wgpu", TG_GPU_LIMITS="minimum")
    return found + [
        job("drop_test", on("wgpu"), "drop_test"),
        *(job(f"gpu_test without {f}", on("wgpu", TG_GPU_WITHOUT=f), "gpu_test",
              "same_losses_of_odd_sizes") for f in ("f16", "subgroups")),
        job("gpu_test without timestamps", on("wgpu", TG_GPU_WITHOUT="timestamps"), "gpu_test",
            "profiles_every_step"),
        job("op_test webgpu, the least adapter",
            {**least, "TG_GPU_WITHOUT": "f16,subgroups,timestamps"}, "op_test", "--device", "webgpu"),
        job("gpu_test, the least limits", least, "gpu_test", "same_lo*"),
        # Workgroups of 16 KiB, bindings of 128 MiB, buffers of 256, 8 storage buffers, and no f16.
        job("models_test, as phones are",
            {**least, "TG_GPU_WITHOUT": "f16,subgroups,timestamps"}, "models_test",
            # Packed caches are left out: sums in another order round a key to its other neighbour.
            "same_*_of_model_files"),
    ]


def fuzz(build, path):
    """One target, for a minute; FUZZ_SECONDS for longer."""
    name = os.path.basename(path)[len("fuzz_"):-len(".c")]
    return Job(f"fuzz {name}", ["make", "--no-print-directory", "-s", "-o", "fuzz-targets",
                                f"BUILD={build}", f"FUZZ_ONLY={name}", "fuzz"],
               needs=("build with fuzzing",), seconds=70, limit_s=7200)


def vitest(*words):
    return ["sh", "-c", f"cd web && exec {NODE} node_modules/.bin/vitest run {' '.join(words)}"]


def pages(mode, build):
    """Chromium: a job for each file; in "long" journeys in Firefox, too."""
    env = {"TG_PROGRAM": os.path.abspath(f"{build}/tinygpt"),
           "TG_SCREENS": os.path.abspath(f"{build}/screens")}

    def job(path):
        name = os.path.basename(path).split(".")[0]
        return Job(f"page: {name}", vitest("--config", "e2e/vitest.config.ts", f"{name}.e2e.ts"),
                   env=env, limit_s=3600, alone=name in TIMED_PAGES)

    found = [j for j in per_line("pages", "web/e2e/*.e2e.ts", job)
             if mode == "long" or j.name not in [f"page: {name}" for name in LONG_PAGES]]
    if mode == "long":
        found += [Job(f"page in Firefox: {name}", vitest(
            "--config", "e2e/vitest.config.ts", f"{name}.e2e.ts"),
            env={**env, "TG_BROWSER": "firefox"}, limit_s=3600) for name in FIREFOX_PAGES]
    return found


def jobs(mode, build):
    isas = told(build, "--list-isas")
    if not isas:
        return [fail("doctor", "doctor --list-isas ends with a fault, or lists nothing")]
    if mode == "quick":
        slow = (*WITH_MODELS, "test_parity")
        return [*unit_tests(build, but=slow), *op_tests(build, isas)]
    asan = {"needs": ("build with asan",), "env": {"ASAN_OPTIONS": "detect_leaks=1"},
            "limit_s": 900}
    but = () if mode == "long" else TOO_LONG_SANITIZED
    qemu = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
    found = [
        *missing(),
        *unit_tests(build),
        *op_tests(build, isas),
        *per_line("command line", "test/cli/test_*.py", lambda p: Job(
            os.path.basename(p), ["python3", p, f"{build}/tinygpt"], limit_s=900)),
        *gpu_tests(mode, build),
        *unit_tests("build/asan", "asan ", but, **asan),
        *op_tests("build/asan", isas, "asan ", **asan),
        *(Job(f"tsan {n}", [f"build/tsan/test/{n}"], needs=("build with tsan",),
              holds=(f"files of {n}",))
          for n in SEVERAL_THREADS),
        Job("ARM op_test", [*qemu, "build/neon/test/op_test", "--isa", "neon"],
            needs=("build for ARM",)),
        Job("ARM simd_test", [*qemu, "build/neon/test/simd_test"],
            needs=("build for ARM",)),
        *(Job(f"modules: {n}", [NODE, f"test/wasm/{n}.mjs", build])
          for n in ("train", "chat")),
        Job("package", vitest(), env={"TG_BUILD": os.path.abspath(build)},
            limit_s=900),
        *pages(mode, build),
        Job("examples", ["test/cli/example.sh", build]),
        Job("check", ["tools/check.sh"], limit_s=900),
    ]
    if mode == "long":
        found += [
            Job("test_losses.py, 50,000 bytes", ["python3", "test/cli/test_losses.py",
                                                 f"{build}/tinygpt"],
                env={"TG_LOSS_BYTES": "50000"}, seconds=600, limit_s=3600),
            *integer_tests(),
            *per_line("fuzz", "test/fuzz/fuzz_*.c", lambda p: fuzz(build, p)),
            *per_line("long", "test/long/*.*", lambda p: Job(
                os.path.basename(p), [p, build], seconds=3600, limit_s=6 * 3600)),
        ]
    for job in found:
        job.seconds = SECONDS.get(job.name, job.seconds)
    return found
