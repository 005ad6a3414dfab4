#!/bin/bash
# llama.sh BUILD-DIR: builds llama.cpp out of the sdist of llama-cpp-python (PyPI) and times a prompt of
# 512 and 128 tokens with two threads, beside ours, on the models of `tools/setup.sh models`.
set -eu
cd "$(dirname "$0")/../.."
work=${1:?want a folder for the build}
models=.cache/models
if [ ! -x "$work/build/bin/llama-bench" ]; then
    mkdir -p "$work"
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install -q scikit-build-core
    (cd "$work" && venv/bin/pip download -q --no-deps --no-build-isolation --no-binary :all: llama-cpp-python==0.3.36 &&
        tar -xzf llama_cpp_python-0.3.36.tar.gz)
    cmake -S "$work/llama_cpp_python-0.3.36/vendor/llama.cpp" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF
    ninja -C "$work/build" llama-bench
fi
for round in 1 2 3; do
    for model in "$models"/*.gguf; do
        "$work/build/bin/llama-bench" -m "$model" -p 512 -n 128 -t 2 -r 2 2>/dev/null | grep -E 'pp512|tg128'
        build/tinygpt bench decode --model "$model" --tokens 128 --threads 2 | grep 'a token'
    done
done
