check_ops.o: src/backend/cpu/check_ops.c src/backend/cpu/check.h \
 src/base/err.h src/base/libc.h src/base/mem.h include/tinygpt.h \
 src/ir/op.h src/ir/tensor.h src/dtype/packed.h src/dtype/blocks.h \
 src/dtype/dtype.h src/dtype/types.def src/ir/ops.def src/ir/levers.def \
 src/backend/cpu/cpu.h src/backend/backend.h src/plan/plan.h \
 src/ir/graph.h src/ops/kernels.h src/base/thread.h src/base/math.h \
 src/base/rng.h src/base/str.h src/base/time.h
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
src/backend/cpu/cpu.h:
src/backend/backend.h:
src/plan/plan.h:
src/ir/graph.h:
src/ops/kernels.h:
src/base/thread.h:
src/base/math.h:
src/base/rng.h:
src/base/str.h:
src/base/time.h:
