#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make check: format, layer rule, size budgets, generated files, types, and that no test hook ships. Behind
# make test, which builds it all with warnings as errors. Ends with "N passed, N failed".
set -u
cd "$(dirname "$0")/.."
passed=0
failed=0
say() { printf '%-12s %s\n' "$1" "$2" && passed=$((passed + 1)); }
fail() { printf 'FAIL %-12s %s\n' "$1" "${2:-}" && failed=$((failed + 1)); }

FORMAT=$(command -v clang-format-19 || true)
if [ -z "$FORMAT" ]; then
    fail format "clang-format-19 is missing: run make setup"
elif find include src app test examples -name '*.[ch]' -print0 | xargs -0 "$FORMAT" --dry-run --Werror 2>build/format.log; then
    say format ok
else
    head -20 build/format.log
    fail format
fi
# A script of a test that no longer parses is found here, in a second, not at the end of a test run.
if find tools test bench -name '*.py' -print0 |
    xargs -0 python3 -c 'import ast, sys; [ast.parse(open(f).read(), f) for f in sys.argv[1:]]'; then
    say scripts ok
else
    fail scripts
fi
python3 tools/layers.py && say layers ok || fail layers
python3 tools/licence.py && say licence ok || fail licence
python3 tools/size.py && say size ok || fail size
if grep -rn 'TG_OP_[a-z]' src/plan src/backend | grep -v 'TG_OP_COUNT'; then fail op-names; else say op-names ok; fi

if python3 tools/barriers.py >build/barriers.log 2>&1; then say barriers "$(cat build/barriers.log)"; else
    cat build/barriers.log
    fail barriers
fi

# A fault that can no longer be put into the code says nothing about the tests.
if python3 tools/mutants/run.py --list >build/mutants.log 2>&1; then say mutants "$(tail -1 build/mutants.log), each in its place"; else
    grep ': ' build/mutants.log | head -20
    fail mutants
fi

# What tests switch on to see a fault is in their own objects, and in nothing that ships.
hooks='TG_GPU_WRONG|TG_TEST_NAN|gpu_lose|trainer_poison|fault-nan|TG_TEST_HOOKS'
shipped=(build/tinygpt build/libtinygpt.a build/libtinygpt.so build/wasm/*.wasm web/dist web/lib web/wasm)
found=$(grep -rlaE "$hooks" "${shipped[@]}" 2>&1)
if [ -n "$found" ]; then
    echo "$found"
    fail hooks
else
    say hooks "none of the tests' in ${#shipped[@]} things that ship"
fi
if make --no-print-directory -s build/gen_docs >build/gen_docs.log 2>&1 &&
    cmp <(build/gen_docs ops) docs/ops.md && cmp <(build/gen_docs levers) docs/levers.md &&
    cmp <(build/gen_docs samplers) docs/samplers.md &&
    cmp <(MAKEFLAGS= make --no-print-directory -s families) web/src/ui/model/families.gen.ts; then
    say generated fresh
else
    fail "generated"
fi
# The C interface in TypeScript: fresh, and laid out as clang does for both widths of a pointer.
if cmp <(python3 tools/gen_abi.py) web/src/lib/abi.gen.ts && python3 tools/gen_abi.py --verify >build/abi.log 2>&1; then
    say abi "$(sed 's/^abi: //' build/abi.log)"
else
    cat build/abi.log
    fail abi
fi
if [ ! -d web/node_modules ]; then
    fail types "web/node_modules is missing: run make web-lib"
elif (cd web && npm run --silent check) >build/types.log 2>&1; then
    say types ok
else
    head -20 build/types.log
    fail types
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
