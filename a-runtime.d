runtime.o: src/runtime/runtime.c src/runtime/runtime.h \
 src/backend/backend.h src/plan/plan.h src/ir/graph.h src/base/mem.h \
 src/base/libc.h include/tinygpt.h src/ir/op.h src/base/err.h \
 src/ir/tensor.h src/dtype/packed.h src/dtype/blocks.h src/dtype/dtype.h \
 src/dtype/types.def src/ir/ops.def src/ir/levers.def src/ops/kernels.h \
 src/backend/cpu/check.h src/base/thread.h src/backend/cpu/cpu.h \
 src/backend/webgpu/check_gpu.h src/backend/webgpu/shaders.h \
 src/backend/webgpu/gpu.h src/backend/webgpu/webgpu.h \
 src/backend/webgpu/gpu_tiles.h src/base/os.h src/base/buf.h \
 src/base/str.h src/base/time.h src/simd/cpu.h src/simd/isa.def \
 src/simd/peak.h
src/runtime/runtime.h:
src/backend/backend.h:
src/plan/plan.h:
src/ir/graph.h:
src/base/mem.h:
src/base/libc.h:
include/tinygpt.h:
src/ir/op.h:
src/base/err.h:
src/ir/tensor.h:
src/dtype/packed.h:
src/dtype/blocks.h:
src/dtype/dtype.h:
src/dtype/types.def:
src/ir/ops.def:
src/ir/levers.def:
src/ops/kernels.h:
src/backend/cpu/check.h:
src/base/thread.h:
src/backend/cpu/cpu.h:
src/backend/webgpu/check_gpu.h:
src/backend/webgpu/shaders.h:
src/backend/webgpu/gpu.h:
src/backend/webgpu/webgpu.h:
src/backend/webgpu/gpu_tiles.h:
src/base/os.h:
src/base/buf.h:
src/base/str.h:
src/base/time.h:
src/simd/cpu.h:
src/simd/isa.def:
src/simd/peak.h:
