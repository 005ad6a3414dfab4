gpu_native.o: src/backend/webgpu/gpu_native.c src/backend/webgpu/gpu.h \
 src/base/err.h src/base/libc.h src/base/mem.h include/tinygpt.h \
 src/backend/webgpu/gpu_features.h src/backend/webgpu/gpu_cache.h \
 src/backend/webgpu/gpu_dawn.h src/backend/webgpu/gpu_self_test.h \
 src/backend/webgpu/shaders.h src/ir/op.h src/ir/tensor.h \
 src/dtype/packed.h src/dtype/blocks.h src/dtype/dtype.h \
 src/dtype/types.def src/ir/ops.def src/ir/levers.def src/base/str.h
src/backend/webgpu/gpu.h:
src/base/err.h:
src/base/libc.h:
src/base/mem.h:
include/tinygpt.h:
src/backend/webgpu/gpu_features.h:
src/backend/webgpu/gpu_cache.h:
src/backend/webgpu/gpu_dawn.h:
src/backend/webgpu/gpu_self_test.h:
src/backend/webgpu/shaders.h:
src/ir/op.h:
src/ir/tensor.h:
src/dtype/packed.h:
src/dtype/blocks.h:
src/dtype/dtype.h:
src/dtype/types.def:
src/ir/ops.def:
src/ir/levers.def:
src/base/str.h:
