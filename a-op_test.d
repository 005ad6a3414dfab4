op_test.o: test/op_test.c src/backend/cpu/check.h src/base/err.h \
 src/base/libc.h src/base/mem.h include/tinygpt.h src/ir/op.h \
 src/ir/tensor.h src/dtype/packed.h src/dtype/blocks.h src/dtype/dtype.h \
 src/dtype/types.def src/ir/ops.def src/ir/levers.def \
 src/backend/webgpu/check_gpu.h src/backend/webgpu/shaders.h \
 src/backend/webgpu/gpu.h src/inspect/inspect.h src/engine/session.h \
 src/chat/reply.h src/tok/tok.h src/base/buf.h src/engine/cache.h \
 src/load/weights.h src/base/os.h src/io/file.h src/base/json.h \
 src/base/sha256.h src/io/manifest.h src/io/reader.h src/io/formats.def \
 src/io/tgpt.h src/io/meta.h src/load/keys.h src/io/gguf.h \
 src/load/vocabulary.h src/chat/chat.h src/chat/jinja.h \
 src/runtime/runtime.h src/backend/backend.h src/plan/plan.h \
 src/ir/graph.h src/ops/kernels.h src/base/thread.h src/model/net.h \
 src/model/layout.h src/model/family.h src/model/tensors.h \
 src/io/pooling.h src/io/pooling.def src/ops/build.h src/model/state.h \
 src/engine/logits.h src/runtime/job.h src/training/train.h \
 src/training/eval_tokens.h src/engine/all_rows.h src/training/text.h \
 src/training/windows.h src/simd/cpu.h src/simd/isa.def
src/backend/cpu/check.h:
src/base/err.h:
src/base/libc.h:
src/base/mem.h:
include/tinygpt.h:
src/ir/op.h:
src/ir/tensor.h:
src/dtype/packed.h:
src/dtype/blocks.h:
src/dtype/dtype.h:
src/dtype/types.def:
src/ir/ops.def:
src/ir/levers.def:
src/backend/webgpu/check_gpu.h:
src/backend/webgpu/shaders.h:
src/backend/webgpu/gpu.h:
src/inspect/inspect.h:
src/engine/session.h:
src/chat/reply.h:
src/tok/tok.h:
src/base/buf.h:
src/engine/cache.h:
src/load/weights.h:
src/base/os.h:
src/io/file.h:
src/base/json.h:
src/base/sha256.h:
src/io/manifest.h:
src/io/reader.h:
src/io/formats.def:
src/io/tgpt.h:
src/io/meta.h:
src/load/keys.h:
src/io/gguf.h:
src/load/vocabulary.h:
src/chat/chat.h:
src/chat/jinja.h:
src/runtime/runtime.h:
src/backend/backend.h:
src/plan/plan.h:
src/ir/graph.h:
src/ops/kernels.h:
src/base/thread.h:
src/model/net.h:
src/model/layout.h:
src/model/family.h:
src/model/tensors.h:
src/io/pooling.h:
src/io/pooling.def:
src/ops/build.h:
src/model/state.h:
src/engine/logits.h:
src/runtime/job.h:
src/training/train.h:
src/training/eval_tokens.h:
src/engine/all_rows.h:
src/training/text.h:
src/training/windows.h:
src/simd/cpu.h:
src/simd/isa.def:
