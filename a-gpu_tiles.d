gpu_tiles.o: src/backend/webgpu/gpu_tiles.c \
 src/backend/webgpu/gpu_tiles.h src/backend/webgpu/gpu.h src/base/err.h \
 src/base/libc.h src/base/mem.h include/tinygpt.h src/ir/op.h \
 src/ir/tensor.h src/dtype/packed.h src/dtype/blocks.h src/dtype/dtype.h \
 src/dtype/types.def src/ir/ops.def src/ir/levers.def \
 src/backend/webgpu/gpu_cache.h src/base/str.h
src/backend/webgpu/gpu_tiles.h:
src/backend/webgpu/gpu.h:
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
src/backend/webgpu/gpu_cache.h:
src/base/str.h:
