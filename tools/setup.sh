#!/bin/bash
# Installs what the tests need and this machine lacks, and says so first. Building the program needs
# nothing but gcc and make.
set -eu
missing=()
want() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
want gcc gcc
want make make
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
want chromium chromium
[ -e /usr/include/microhttpd.h ] || missing+=(libmicrohttpd-dev)
[ -e /usr/include/cmocka.h ] || missing+=(libcmocka-dev)
[ -e /usr/aarch64-linux-gnu/include/stdio.h ] || missing+=(libc6-dev-arm64-cross)
ls /usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1 || missing+=(libclang-rt-19-dev)
ldconfig -p | grep -q libvulkan.so.1 || missing+=(libvulkan1)
[ -e /usr/share/vulkan/icd.d/lvp_icd.x86_64.json ] || missing+=(mesa-vulkan-drivers)

# WebGPU for native builds: the header and wgpu-native out of one package, Dawn out of another. Both
# are other people's, pinned, and stay outside of the tree.
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
have_webgpu() {
    [ -e "$webgpu/webgpu.h" ] && [ -e "$webgpu/libwgpu_native-release.so" ] &&
        [ -e "$webgpu/libwebgpu_wrapper.so" ]
}

if [ ${#missing[@]} -eq 0 ] && have_webgpu; then
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
echo "setup: done"
