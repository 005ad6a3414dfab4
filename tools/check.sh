#!/bin/bash
# make check: format, layer rule, size budgets, generated files, warnings as errors with gcc and clang.
set -u
cd "$(dirname "$0")/.."
failed=0
say() { printf '%-12s %s\n' "$1" "$2"; }
fail() { say "$1" "FAILED"; failed=1; }

FORMAT=$(command -v clang-format-19 || true)
if [ -z "$FORMAT" ]; then
    say format "clang-format-19 is missing: run make setup"
    failed=1
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
python3 tools/size.py && say size ok || fail size
if grep -rn 'TG_OP_[a-z]' src/plan src/backend | grep -v 'TG_OP_COUNT'; then fail op-names; else say op-names ok; fi

if python3 tools/barriers.py >build/barriers.log 2>&1; then say barriers "$(cat build/barriers.log)"; else
    cat build/barriers.log
    fail barriers
fi

# gcc finds some of its warnings while it optimises; clang's need none of that.
for compiler in gcc clang-19; do
    optimise=$([ $compiler = gcc ] && echo -O1 || echo -O0)
    if ! command -v $compiler >/dev/null; then
        say $compiler "missing: run make setup"
        failed=1
        continue
    fi
    if make --no-print-directory -s -j2 BUILD=build/check-$compiler CC=$compiler OPT=$optimise EXTRA="-Werror -g0" build tests >build/check-$compiler.log 2>&1; then
        say "$compiler" "no warning"
    else
        grep -E 'error|warning' build/check-$compiler.log | head -20
        fail $compiler
    fi
done
if make --no-print-directory -s build/gen_docs >build/gen_docs.log 2>&1 &&
    cmp <(build/gen_docs ops) docs/ops.md && cmp <(build/gen_docs levers) docs/levers.md; then
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
    say types "web/node_modules is missing: run make web-lib"
    failed=1
elif (cd web && npm run --silent check) >build/types.log 2>&1; then
    say types ok
else
    head -20 build/types.log
    fail types
fi
exit $failed
