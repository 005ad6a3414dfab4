shaders.o: src/backend/webgpu/shaders.c src/backend/webgpu/shaders.h \
 src/backend/webgpu/gpu.h src/base/err.h src/base/libc.h src/base/mem.h \
 include/tinygpt.h src/ir/op.h src/ir/tensor.h src/dtype/packed.h \
 src/dtype/blocks.h src/dtype/dtype.h src/dtype/types.def src/ir/ops.def \
 src/ir/levers.def src/backend/webgpu/gpu_self_test.h \
 build/gen/backend/webgpu/prelude.wgsl.h build/gen/ops/reduce.wgsl.h \
 build/gen/ops/matrices.wgsl.h build/gen/ops/matrices_plain.wgsl.h
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
src/backend/webgpu/gpu_self_test.h:
build/gen/backend/webgpu/prelude.wgsl.h:
build/gen/ops/reduce.wgsl.h:
build/gen/ops/matrices.wgsl.h:
build/gen/ops/matrices_plain.wgsl.h:
