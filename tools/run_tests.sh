#!/bin/bash
# run_tests.sh quick|full|long BUILD: runs the tests and ends with "N passed, N failed".
#
# A test is a program: exit code 0 and, where it prints counts ("N passed, M failed", or cmocka's
# lines), those counts are added up. One that prints none counts as one.
#
# Most tests keep one core busy, so "full" and "long" go along two lanes:
#
#     here     unit tests, ops, modules, package | page .. | page by the clock, check
#     beside   command line                      | GPU ..  |
#
# The sanitizers and neon are taken by whichever lane is free first (..). Who uses the same files
# waits for the other: the sanitizers' unit tests for the plain ones, and the page, with which the
# program is linked anew, for the command line. The page's tests that look at a clock wait until
# nothing runs beside them.
set -u
mode=$1
build=$2
cd "$(dirname "$0")/.."
export NO_COLOR=1
passed=0
failed=0
dir=$(mktemp -d)
log=$dir/log
lane=
trap '[ -z "$lane" ] || kill "$lane" 2>/dev/null; rm -rf "$dir"' EXIT

run() { # name command...
    local name=$1 start=$SECONDS code p f
    shift
    "$@" >"$log" 2>&1
    code=$?
    p=$(sed -n 's/.*[^0-9]\([0-9][0-9]*\) passed, [0-9]* failed.*/\1/p; s/^\([0-9][0-9]*\) passed, [0-9]* failed.*/\1/p; s/.*\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | awk '{s += $1} END {print s + 0}')
    f=$(sed -n 's/.*[0-9] passed, \([0-9]*\) failed.*/\1/p; s/.*\[  FAILED  \] [^:]*: \([0-9]*\) test.*/\1/p' "$log" | awk '{s += $1} END {print s + 0}')
    if [ $code -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    if [ $code -eq 0 ] && [ "$p" -eq 0 ] && [ "$f" -eq 0 ]; then p=1; fi
    passed=$((passed + p))
    failed=$((failed + f))
    printf '%-4s %-44s %5d passed %3d failed %4d s\n' "$([ "$f" -eq 0 ] && echo ok || echo FAIL)" "$name" "$p" "$f" $((SECONDS - start))
    grep '^passed the second time' "$log" | sed 's/^/     | /'
    if [ "$f" -ne 0 ]; then
        # Which tests, however long the log is, then its end.
        grep '^ *FAIL \|Error: ' "$log" | awk '!seen[$0]++' | head -20 | sed 's/^/     | /'
        grep -v '^\[ RUN\|^\[       OK' "$log" | tail -25 | sed 's/^/     | /'
    fi
}

# beside FUNCTION: runs it in the background, with counts of its own; join prints its lines and adds
# them up. A lane that breaks off leaves no counts, and has failed.
beside() {
    (
        log=$dir/log.beside passed=0 failed=0
        "$@"
        echo "$passed $failed" >"$dir/counts"
    ) >"$dir/lines" 2>&1 &
    lane=$!
}
join() {
    local p=0 f=1
    wait "$lane"
    cat "$dir/lines"
    [ -e "$dir/counts" ] && read -r p f <"$dir/counts" || echo "FAIL the lane beside broke off"
    passed=$((passed + p))
    failed=$((failed + f))
}
# What one lane has done, and the other one waits for, unless that has ended.
done_with() { touch "$dir/$1"; }
wait_for() { # what pid
    until [ -e "$dir/$1" ] || ! kill -0 "$2" 2>/dev/null; do sleep 1; done
}

isas=$("$build/tinygpt" doctor --list-isas 2>/dev/null || echo scalar)
unit_tests() { # build label [names to leave out]
    local t
    for t in "$1"/test/test_*; do
        case " ${3:-} " in *" $(basename "$t") "*) continue ;; esac
        [[ $t == *.d ]] && continue
        [ -x "$t" ] && run "$2$(basename "$t")" "$t"
    done
}
op_tests() {
    run "$2simd_test" "$1/test/simd_test"
    for isa in $isas; do run "$2op_test $isa" "$1/test/op_test" --isa "$isa"; done
    run "$2op_test gradients" "$1/test/op_test" --gradients
}
lever_tests() {
    for lever in $("$build/tinygpt" doctor --list-levers); do
        case $lever in # of a GPU alone: levers_test
        subgroups | vec4_loads | tuned_tiles | static_bindings | readback_pipelining) continue ;;
        esac
        run "op_test -$lever" "$build/test/op_test" --levers "-$lever"
    done
}
sanitized() {
    run "build with $1" make --no-print-directory -s -j2 "$1" GPU_TESTS= DAWN=
    # Thousands of training steps, or hundreds of tokens of real models, say nothing more about memory
    # than fifty: those wait for "long".
    ASAN_OPTIONS=detect_leaks=1 unit_tests "build/$1" "$1 " \
        "$([ "$mode" = long ] || echo test_parity test_llama_cpp)"
    op_tests "build/$1" "$1 "
}
# What a library has compiled is kept for nobody, but where a test is of just that.
export TG_GPU_CACHE=off
# Adapters that compute on the CPU: Dawn on SwiftShader, and wgpu-native on Mesa's lavapipe.
webgpu=$PWD/.cache/webgpu
on_dawn() { VK_ICD_FILENAMES=/usr/lib/chromium/vk_swiftshader_icd.json TG_WEBGPU_LIB=$webgpu/libwebgpu_wrapper.so "$@"; }
on_wgpu() { VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/lvp_icd.x86_64.json TG_WEBGPU_LIB=$webgpu/libwgpu_native-release.so "$@"; }
# Dawn with devices that stay, and what they have compiled.
on_shared() { on_dawn env TG_WEBGPU_LIB="$build/test/libshared.so" "$@"; }
gpu_tests() {
    for adapter in on_dawn on_wgpu; do
        run "op_test webgpu, $adapter" $adapter "$build/test/op_test" --device webgpu
        run "merge_test, $adapter" $adapter "$build/test/merge_test"
        run "gpu_test, $adapter" $adapter "$build/test/gpu_test"
        run "levers_test, $adapter" "${adapter/dawn/shared}" "$build/test/levers_test"
        run "op_test webgpu, levers off, $adapter" $adapter "$build/test/op_test" \
            --device webgpu --levers -subgroups,-vec4_loads
    done
    run "drop_test" on_wgpu "$build/test/drop_test"
    # What an adapter may lack: each feature, and all beyond the limits that every one has. A run
    # through all shaders shows what that changes; profiles alone use a feature.
    for feature in f16 subgroups; do
        run "gpu_test without $feature" on_wgpu env TG_GPU_WITHOUT=$feature \
            "$build/test/gpu_test" same_losses_of_odd_sizes
    done
    run "gpu_test without timestamps" on_wgpu env TG_GPU_WITHOUT=timestamps \
        "$build/test/gpu_test" profiles_every_step
    run "op_test webgpu, the least adapter" on_wgpu env TG_GPU_LIMITS=minimum \
        TG_GPU_WITHOUT=f16,subgroups,timestamps "$build/test/op_test" --device webgpu
    run "gpu_test, the least limits" on_wgpu env TG_GPU_LIMITS=minimum \
        "$build/test/gpu_test" 'same_lo*'
}

tsan_and_neon() {
    run "build with tsan" make --no-print-directory -s -j2 tsan TSAN=build/tsan/test/test_base_thread
    run "tsan test_base_thread" build/tsan/test/test_base_thread
    run "neon build" make --no-print-directory -s -j2 BUILD=build/neon EXTRA=-g0 CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar build/neon/test/op_test build/neon/test/simd_test
    run "neon op_test" qemu-aarch64 -L /usr/aarch64-linux-gnu build/neon/test/op_test --isa neon
    run "neon simd_test" qemu-aarch64 -L /usr/aarch64-linux-gnu build/neon/test/simd_test
}
# What either lane can do: the folder belongs to the one that made it.
spare_work() {
    mkdir "$dir/asan" 2>/dev/null && sanitized asan
    mkdir "$dir/tsan" 2>/dev/null && tsan_and_neon
}
timed_e2e="hosting hidden bench"
lane_beside() {
    for t in test/cli/test_*.py; do run "$(basename "$t")" python3 "$t" "$build/tinygpt"; done
    done_with command_line
    gpu_tests
    wait_for unit_tests $$
    spare_work
}

[ "$mode" = quick ] || python3 tools/oracle/fixtures.py build/fixtures >/dev/null || failed=1
[ "$mode" != quick ] || [ -d build/fixtures ] || python3 tools/oracle/fixtures.py build/fixtures >/dev/null
[ "$mode" = quick ] || beside lane_beside
unit_tests "$build" ""
done_with unit_tests
op_tests "$build" ""
if [ "$mode" != quick ]; then
    lever_tests
    run "wasm modules" make --no-print-directory -s test-wasm
    run "web package" make --no-print-directory -s test-web
    wait_for command_line "$lane"
    run "web page in Chromium" make --no-print-directory -s test-e2e \
        E2E="$(printf -- '--exclude=%s.e2e.ts ' $timed_e2e)"
    spare_work
    join
    # The page is built.
    run "web page by the clock" make --no-print-directory -s -o web test-e2e E2E="$timed_e2e"
    run "examples/train.c" test/cli/example.sh
    run "check" tools/check.sh
fi
if [ "$mode" = long ]; then
    run "test_losses.py, 50,000 bytes" env TG_LOSS_BYTES=50000 \
        python3 test/cli/test_losses.py "$build/tinygpt"
    run "fuzz" make --no-print-directory -s BUILD="$build" fuzz
    for t in test/long/*.sh test/long/*.py; do [ -e "$t" ] && run "$(basename "$t")" "$t" "$build"; done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
