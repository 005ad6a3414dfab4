matmul.o: src/ops/matmul/matmul.c src/ops/activation.h src/base/math.h \
 src/base/libc.h src/ops/build.h src/ir/graph.h src/base/mem.h \
 include/tinygpt.h src/ir/op.h src/base/err.h src/ir/tensor.h \
 src/dtype/packed.h src/dtype/blocks.h src/dtype/dtype.h \
 src/dtype/types.def src/ir/ops.def src/ir/levers.def \
 src/ops/matmul/matmul_operands.h src/ops/matmul/matmul_split.h \
 src/ops/shader.h src/ops/packed_case.h src/base/rng.h src/ops/rules.h \
 build/gen/ops/matmul/matmul_common.wgsl.h \
 build/gen/ops/matmul/matmul_tile.wgsl.h \
 build/gen/ops/matmul/matmul_few.wgsl.h build/gen/ops/packed.wgsl.h \
 build/gen/ops/matmul/matmul_weights.wgsl.h \
 build/gen/ops/matmul/matmul_values.wgsl.h \
 build/gen/ops/packed_rows.wgsl.h \
 build/gen/ops/matmul/matmul_packed.wgsl.h \
 build/gen/ops/matmul/matmul_packed_one.wgsl.h \
 build/gen/ops/matmul/matmul_packed_tile.wgsl.h \
 build/gen/ops/matmul/matmul_right.wgsl.h \
 build/gen/ops/matmul/matmul_core.wgsl.h \
 build/gen/ops/matmul/matmul_ops.wgsl.h \
 build/gen/ops/matmul/matmul_finish.wgsl.h \
 build/gen/ops/matmul/matmul_whole.wgsl.h \
 build/gen/ops/matmul/matmul_parts.wgsl.h \
 build/gen/ops/matmul/matmul_gather.wgsl.h src/ops/matmul/matmul_halves.h \
 build/gen/ops/matmul/matmul_padded.wgsl.h \
 build/gen/ops/matmul/matmul_halves.wgsl.h \
 build/gen/ops/matmul/matmul_float_halves.wgsl.h \
 build/gen/ops/matmul/matmul_packed_halves.wgsl.h \
 build/gen/ops/matmul/matmul_matrices.wgsl.h \
 build/gen/ops/matmul/matmul_back.wgsl.h \
 build/gen/ops/matmul/matmul_back_finish.wgsl.h \
 build/gen/ops/matmul/matmul_back_gather.wgsl.h
src/ops/activation.h:
src/base/math.h:
src/base/libc.h:
src/ops/build.h:
src/ir/graph.h:
src/base/mem.h:
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
src/ops/matmul/matmul_operands.h:
src/ops/matmul/matmul_split.h:
src/ops/shader.h:
src/ops/packed_case.h:
src/base/rng.h:
src/ops/rules.h:
build/gen/ops/matmul/matmul_common.wgsl.h:
build/gen/ops/matmul/matmul_tile.wgsl.h:
build/gen/ops/matmul/matmul_few.wgsl.h:
build/gen/ops/packed.wgsl.h:
build/gen/ops/matmul/matmul_weights.wgsl.h:
build/gen/ops/matmul/matmul_values.wgsl.h:
build/gen/ops/packed_rows.wgsl.h:
build/gen/ops/matmul/matmul_packed.wgsl.h:
build/gen/ops/matmul/matmul_packed_one.wgsl.h:
build/gen/ops/matmul/matmul_packed_tile.wgsl.h:
build/gen/ops/matmul/matmul_right.wgsl.h:
build/gen/ops/matmul/matmul_core.wgsl.h:
build/gen/ops/matmul/matmul_ops.wgsl.h:
build/gen/ops/matmul/matmul_finish.wgsl.h:
build/gen/ops/matmul/matmul_whole.wgsl.h:
build/gen/ops/matmul/matmul_parts.wgsl.h:
build/gen/ops/matmul/matmul_gather.wgsl.h:
src/ops/matmul/matmul_halves.h:
build/gen/ops/matmul/matmul_padded.wgsl.h:
build/gen/ops/matmul/matmul_halves.wgsl.h:
build/gen/ops/matmul/matmul_float_halves.wgsl.h:
build/gen/ops/matmul/matmul_packed_halves.wgsl.h:
build/gen/ops/matmul/matmul_matrices.wgsl.h:
build/gen/ops/matmul/matmul_back.wgsl.h:
build/gen/ops/matmul/matmul_back_finish.wgsl.h:
build/gen/ops/matmul/matmul_back_gather.wgsl.h:
