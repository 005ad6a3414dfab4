#!/bin/bash
# Installs what the tests need and this machine lacks, and says so first. Building the program needs
# nothing but gcc and make.
set -eu
missing=()
want() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
want gcc gcc
want make make
want python3 python3
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
if [ ${#missing[@]} -eq 0 ]; then
    echo "setup: everything is here"
    exit 0
fi
echo "setup: about to install with apt-get: ${missing[*]}"
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
$sudo apt-get update -q >/dev/null
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
echo "setup: done"
