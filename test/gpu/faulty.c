/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faulty.c - a WebGPU library with a fault, for test/cli/test_gpu.py: some functions of its own
 * stand before those of a real one, which it is linked to and which has all the others.
 *
 *     TG_FAULT=      the fault
 *     limits         the adapter has four storage buffers, where eight are wanted
 *     lose=N         at every Nth submit the device is destroyed first
 *     drop=N         from submit N on nothing is computed, without a word
 *     skip=N         submit N alone is not, where the first one after the fault was set is 1
 *     twice          the process ends when a shader is compiled that was compiled before
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <webgpu.h>

static WGPUDevice device;

/* The function that this one stands before. */
#define REAL(name) ((WGPUProc##name)dlsym(RTLD_NEXT, "wgpu" #name))

/* What follows the fault's name; NULL: it is another fault. */
static const char *fault(const char *name) {
    const char *have = getenv("TG_FAULT");
    const size_t n = strlen(name);
    if (!have || strncmp(have, name, n) != 0) return NULL;
    return have[n] == '=' ? have + n + 1 : "";
}

WGPUStatus wgpuAdapterGetLimits(WGPUAdapter adapter, WGPULimits *limits) {
    const WGPUStatus status = REAL(AdapterGetLimits)(adapter, limits);
    if (fault("limits")) limits->maxStorageBuffersPerShaderStage = 4;
    return status;
}

WGPUQueue wgpuDeviceGetQueue(WGPUDevice of) {
    device = of;
    return REAL(DeviceGetQueue)(of);
}

/* Submits since the fault was set to what it is. */
static long count(void) {
    static char now[64];
    static long submits;
    const char *have = getenv("TG_FAULT");
    if (!have) have = "";
    if (strcmp(now, have) != 0) submits = 0;
    strncpy(now, have, sizeof now - 1);
    return ++submits;
}

void wgpuQueueSubmit(WGPUQueue queue, size_t n, const WGPUCommandBuffer *list) {
    const long submits = count();
    const char *at;
    if ((at = fault("drop")) && submits >= atol(at)) return;
    if ((at = fault("skip")) && submits == atol(at)) return;
    if ((at = fault("lose")) && submits % atol(at) == 0) REAL(DeviceDestroy)(device);
    REAL(QueueSubmit)(queue, n, list);
}

/* Two pipelines of one text have labels that differ: the entry point is in it. */
WGPUShaderModule wgpuDeviceCreateShaderModule(WGPUDevice of, const WGPUShaderModuleDescriptor *d) {
    static uint64_t made[1024];
    static size_t n_made;
    const WGPUShaderSourceWGSL *wgsl = (const void *)d->nextInChain;
    const WGPUStringView texts[] = { d->label, wgsl->code };
    uint64_t hash = 0;
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; texts[t].data[i] && i < texts[t].length; i++)
            hash = (hash ^ (unsigned char)texts[t].data[i]) * UINT64_C(1099511628211);
    for (size_t i = 0; fault("twice") && i < n_made; i++)
        if (made[i] == hash) {
            fprintf(stderr, "compiled twice: %s\n", d->label.data);
            exit(9);
        }
    if (n_made < 1024) made[n_made++] = hash;
    return REAL(DeviceCreateShaderModule)(of, d);
}
