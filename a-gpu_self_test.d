gpu_self_test.o: src/backend/webgpu/gpu_self_test.c \
 src/backend/webgpu/gpu_self_test.h src/backend/webgpu/shaders.h \
 src/backend/webgpu/gpu.h src/base/err.h src/base/libc.h src/base/mem.h \
 include/tinygpt.h src/ir/op.h src/ir/tensor.h src/dtype/packed.h \
 src/dtype/blocks.h src/dtype/dtype.h src/dtype/types.def src/ir/ops.def \
 src/ir/levers.def src/backend/cpu/check.h src/backend/webgpu/gpu_layer.h \
 src/backend/webgpu/check_gpu.h src/base/str.h \
 build/gen/ops/reduce_subgroups.wgsl.h
src/backend/webgpu/gpu_self_test.h:
src/backend/webgpu/shaders.h:
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
src/backend/cpu/check.h:
src/backend/webgpu/gpu_layer.h:
src/backend/webgpu/check_gpu.h:
src/base/str.h:
build/gen/ops/reduce_subgroups.wgsl.h:
