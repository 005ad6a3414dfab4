webgpu.o: src/backend/webgpu/webgpu.c src/backend/webgpu/webgpu.h \
 src/backend/backend.h src/plan/plan.h src/ir/graph.h src/base/mem.h \
 src/base/libc.h include/tinygpt.h src/ir/op.h src/base/err.h \
 src/ir/tensor.h src/dtype/packed.h src/dtype/blocks.h src/dtype/dtype.h \
 src/dtype/types.def src/ir/ops.def src/ir/levers.def src/ops/kernels.h \
 src/backend/webgpu/gpu.h src/backend/webgpu/gpu_tiles.h \
 src/backend/webgpu/gpu_self_test.h src/backend/webgpu/shaders.h \
 src/backend/webgpu/merge.h src/backend/webgpu/submit_check.h \
 src/base/str.h src/base/time.h
src/backend/webgpu/webgpu.h:
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
src/backend/webgpu/gpu.h:
src/backend/webgpu/gpu_tiles.h:
src/backend/webgpu/gpu_self_test.h:
src/backend/webgpu/shaders.h:
src/backend/webgpu/merge.h:
src/backend/webgpu/submit_check.h:
src/base/str.h:
src/base/time.h:
