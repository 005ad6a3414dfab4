/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_wasm_single.c - threads in the modules that have none: a pool of more than one worker is
 * refused with a message, and so nobody ever waits. os_wasm_thread.c has the others.
 */
#include "base/os/os.h"
#include "base/os/os_wasm.h"

unsigned tg_wasm_thread_count(void) { return 0; }

bool tg_wasm_in_thread(void) { return false; }

bool tg_os_thread_start(tg_os_thread *thread, size_t stack_bytes, void *(*fn)(void *), void *arg) {
    (void)thread;
    (void)stack_bytes;
    (void)fn;
    (void)arg;
    return false;
}

void tg_os_thread_join(tg_os_thread thread) { (void)thread; }

void tg_os_wait(_Atomic uint32_t *word, uint32_t expected) {
    (void)word;
    (void)expected;
}

void tg_os_wake_all(_Atomic uint32_t *word) { (void)word; }

void tg_os_pause(void) {}
