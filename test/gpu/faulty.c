/*
 * faulty.c - a WebGPU library with a fault, for test/cli/test_gpu.py: some functions of its own
 * stand before those of a real one, which it is linked to and which has all the others.
 *
 *     TG_FAULT=      the fault
 *     limits         the adapter has four storage buffers, where eight are wanted
 *     lose=N         at every Nth submit the device is destroyed first
 *     drop=N         from submit N on nothing is computed, without a word
 */
#define _GNU_SOURCE
#include <dlfcn.h>
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

void wgpuQueueSubmit(WGPUQueue queue, size_t n, const WGPUCommandBuffer *list) {
    static long submits;
    const char *at;
    submits++;
    if ((at = fault("drop")) && submits >= atol(at)) return;
    if ((at = fault("lose")) && submits % atol(at) == 0) REAL(DeviceDestroy)(device);
    REAL(QueueSubmit)(queue, n, list);
}
