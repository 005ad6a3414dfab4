/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.c - a WebGPU library whose devices are never closed, for levers_test.c, which opens one
 * context after another: some functions of its own stand before Dawn's, which it is linked to.
 *
 * Who asks for features gets the device that was opened with them. What is compiled on it stays,
 * and Dawn finds a text that it has had before; SwiftShader takes up to three seconds for one. Not
 * for tests that lose a device, or have two contexts at a time: errors go to the last one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <webgpu.h>

#define REAL(name) ((WGPUProc##name)dlsym(RTLD_NEXT, "wgpu" #name))

static WGPUInstance instance;

static struct device {
    WGPUFeatureName features[4];
    size_t n;
    WGPUDevice device;
    WGPUUncapturedErrorCallbackInfo on_error; /* whoever has it now */
} devices[4];
static size_t n_devices;

WGPUInstance wgpuCreateInstance(const WGPUInstanceDescriptor *d) {
    if (!instance) instance = REAL(CreateInstance)(d);
    if (instance) REAL(InstanceAddRef)(instance);
    return instance;
}

static void pass_on(const WGPUDevice *device, WGPUErrorType type, WGPUStringView text, void *user,
                    void *unused) {
    const WGPUUncapturedErrorCallbackInfo *to = &((struct device *)user)->on_error;
    (void)unused;
    to->callback(device, type, text, to->userdata1, to->userdata2);
}

static void keep(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView text, void *user,
                 void *then) {
    (void)status, (void)text, (void)then;
    ((struct device *)user)->device = device;
}

/* Blobs would be kept for whom the device was opened first. */
static WGPUDevice open_device(WGPUAdapter adapter, const WGPUDeviceDescriptor *want,
                              struct device *d) {
    WGPUDeviceDescriptor own = *want;
    if (own.nextInChain) own.nextInChain->next = NULL;
    own.deviceLostCallbackInfo = (WGPUDeviceLostCallbackInfo) { .nextInChain = NULL };
    own.uncapturedErrorCallbackInfo =
        (WGPUUncapturedErrorCallbackInfo) { .callback = pass_on, .userdata1 = d };
    REAL(AdapterRequestDevice)(
        adapter, &own,
        (WGPURequestDeviceCallbackInfo) {
            .mode = WGPUCallbackMode_AllowProcessEvents, .callback = keep, .userdata1 = d });
    for (int i = 0; i < 1000 && !d->device; i++) REAL(InstanceProcessEvents)(instance);
    return d->device;
}

WGPUFuture wgpuAdapterRequestDevice(WGPUAdapter adapter, const WGPUDeviceDescriptor *want,
                                    WGPURequestDeviceCallbackInfo info) {
    const size_t n = want->requiredFeatureCount, bytes = n * sizeof *want->requiredFeatures;
    struct device *d = devices;
    while (d < devices + n_devices &&
           (d->n != n || memcmp(d->features, want->requiredFeatures, bytes) != 0))
        d++;
    if (d == devices + n_devices) {
        if (n > 4 || n_devices == 4 || !open_device(adapter, want, d))
            return REAL(AdapterRequestDevice)(adapter, want, info);
        d->n = n;
        memcpy(d->features, want->requiredFeatures, bytes);
        n_devices++;
    }
    d->on_error = want->uncapturedErrorCallbackInfo;
    REAL(DeviceAddRef)(d->device);
    info.callback(WGPURequestDeviceStatus_Success, d->device, (WGPUStringView) { "", 0 },
                  info.userdata1, info.userdata2);
    return (WGPUFuture) { 0 };
}

void wgpuDeviceDestroy(WGPUDevice device) { (void)device; }
void wgpuComputePipelineRelease(WGPUComputePipeline pipeline) { (void)pipeline; }
