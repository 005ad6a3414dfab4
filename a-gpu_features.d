gpu_features.o: src/backend/webgpu/gpu_features.c \
 src/backend/webgpu/gpu_features.h src/backend/webgpu/gpu.h \
 src/base/err.h src/base/libc.h src/base/mem.h include/tinygpt.h \
 src/backend/webgpu/gpu_cache.h src/backend/webgpu/gpu_dawn.h \
 src/base/str.h
src/backend/webgpu/gpu_features.h:
src/backend/webgpu/gpu.h:
src/base/err.h:
src/base/libc.h:
src/base/mem.h:
include/tinygpt.h:
src/backend/webgpu/gpu_cache.h:
src/backend/webgpu/gpu_dawn.h:
src/base/str.h:
