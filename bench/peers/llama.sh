#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# llama.sh FOLDER [options]: builds llama.cpp out of the sdist of llama-cpp-python (PyPI) in FOLDER, then times
# it beside ours, on the models of `tools/setup.sh models` (llama.py, which takes the options).
# llama.sh FOLDER --golden: makes the numbers of test/golden/llama_cpp again, by tools/oracle/llama_cpp.cpp.
set -eu
cd "$(dirname "$0")/../.."
work=$(realpath -m "${1:?want a folder for the build}")
shift
source=$work/llama_cpp_python-0.3.36/vendor/llama.cpp
if [ ! -x "$work/build/bin/llama-bench" ]; then
    mkdir -p "$work"
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install -q scikit-build-core
    (cd "$work" && venv/bin/pip download -q --no-deps --no-build-isolation --no-binary :all: llama-cpp-python==0.3.36 &&
        tar -xzf llama_cpp_python-0.3.36.tar.gz)
    cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF
    ninja -C "$work/build" llama-bench llama
fi
if [ "${1:-}" != --golden ]; then
    exec python3 bench/peers/llama.py "$work/build/bin/llama-bench" "$@"
fi
lib=$work/build/bin
oracle=$work/llama_cpp
g++ -O2 -o "$oracle" tools/oracle/llama_cpp.cpp -I"$source/include" -I"$source/ggml/include" \
    -L"$lib" -lllama -lggml -lggml-base "-Wl,-rpath,$lib"
golden=test/golden/llama_cpp
for pair in smollm2=SmolLM2-135M-Instruct.Q4_1 gemma3=gemma-3-270m-q4_k_m; do
    name=${pair%%=*} model=.cache/models/${pair#*=}.gguf
    "$oracle" greedy "$model" $golden/${name}_prompts.txt >$golden/${name}_greedy.txt
done
for pair in smollm2=SmolLM2-135M-Instruct.Q4_1 gemma3=gemma-3-270m-q4_k_m; do
    for bytes in 4000 50000; do
        echo "${pair%%=*} $bytes $("$oracle" loss ".cache/models/${pair#*=}.gguf" build/test/stories.txt $bytes | tail -1)"
    done
done >$golden/losses.txt
