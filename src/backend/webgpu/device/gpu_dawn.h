/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_dawn.h - what Dawn's own webgpu.h declares beyond the standard one, or otherwise.
 */
#ifndef TG_BACKEND_WEBGPU_GPU_DAWN_H
#define TG_BACKEND_WEBGPU_GPU_DAWN_H

#include <stddef.h>
#include <webgpu.h>

/* Dawn's own extension of several descriptors: switches by name, as its header webgpu.h declares
 * it. */
typedef struct dawn_toggles {
    WGPUChainedStruct chain;
    size_t n_on;
    const char *const *on;
    size_t n_off;
    const char *const *off;
} dawn_toggles;
enum { DAWN_TOGGLES = 0x0005000A };

/* Another one: whom to ask before something is compiled, and to tell after. It has been laid out
 * anew under the same number. */
typedef struct dawn_cache {
    WGPUChainedStruct chain;
    WGPUStringView isolation_key;
    size_t (*load)(const void *key, size_t key_bytes, void *value, size_t value_bytes, void *user);
    void (*store)(const void *key, size_t key_bytes, const void *value, size_t value_bytes,
                  void *user);
    void *user;
} dawn_cache;
typedef struct dawn_cache_load {
    WGPUChainedStruct *next;
    size_t (*call)(size_t key_bytes, const uint8_t *key, size_t value_bytes, uint8_t *value,
                   void *user, void *unused);
    void *user, *unused;
} dawn_cache_load;
typedef struct dawn_cache_store {
    WGPUChainedStruct *next;
    void (*call)(size_t key_bytes, const uint8_t *key, size_t value_bytes, const uint8_t *value,
                 void *user, void *unused);
    void *user, *unused;
} dawn_cache_store;
typedef struct dawn_cache_now {
    WGPUChainedStruct chain;
    WGPUStringView isolation_key;
    dawn_cache_load load;
    dawn_cache_store store;
} dawn_cache_now;
enum { DAWN_CACHE = 0x00050007 };

#endif
