/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_wasm_thread.c - threads in WebAssembly: workers that the host has started, lent to the pool.
 *
 * C cannot start a thread: a worker begins with a promise. So the host starts them before they are
 * needed (os_wasm.h says how), and each stays in C for good:
 *
 *     thread_main   sleep until busy --- fn(arg) --- busy = 0, wake who joins ---+
 *                      ^--------------------------------------------------------+
 *
 * tg_os_thread_start takes one that sleeps, tg_os_thread_join waits until it sleeps again. The list
 * of threads belongs to the engine's instance; `busy` alone is shared.
 */
#include "base/os/os.h"
#include "base/os/os_wasm.h"

#include <stdatomic.h>

#define STACK_BYTES      ((size_t)256 << 10)
#define ENGINE_NAP_NS    ((int64_t)250 * 1000 * 1000)
#define WAIT_FOR_EVER_NS ((int64_t)-1)

struct tg_wasm_thread {
    struct tg_wasm_thread *next;
    void *storage; /* thread-local */
    void *(*fn)(void *);
    void *arg;
    _Atomic uint32_t busy;
};

static tg_wasm_thread *threads; /* all that were made */
static unsigned n_threads;
static _Atomic uint32_t died; /* a thread has trapped: whoever waits for it would do so for ever */
static _Thread_local bool in_thread;

unsigned tg_wasm_thread_count(void) { return n_threads; }

bool tg_wasm_in_thread(void) { return in_thread; }

/* --------------------------------------------------------------------------------- what is made */

/* A stack's end must be aligned to 16 bytes, as the struct behind it is then. */
tg_wasm_thread *tg_wasm_thread_new(void) {
    const size_t align = __builtin_wasm_tls_align();
    const size_t self_bytes = (sizeof(tg_wasm_thread) + align - 1) & ~(align - 1);
    char *stack = tg_wasm_alloc(STACK_BYTES + self_bytes + __builtin_wasm_tls_size());
    if (!stack) return NULL;
    tg_wasm_thread *self = (tg_wasm_thread *)(void *)(stack + STACK_BYTES);
    *self = (tg_wasm_thread) { .next = threads, .storage = (char *)self + self_bytes };
    threads = self;
    n_threads++;
    return self;
}

_Static_assert(STACK_BYTES % 16 == 0, "the end of a stack must be aligned");

/* The linker makes it: fills the storage, and points this instance to it. */
void __wasm_init_tls(void *storage);

/* Called by the function below, by its name. */
_Noreturn void tg_wasm_thread_run(tg_wasm_thread *self);
_Noreturn void tg_wasm_thread_run(tg_wasm_thread *self) {
    __wasm_init_tls(self->storage);
    in_thread = true;
    for (;;) {
        while (!atomic_load(&self->busy)) tg_os_wait(&self->busy, 0);
        self->fn(self->arg);
        atomic_store(&self->busy, 0);
        tg_os_wake_all(&self->busy);
    }
}

/* No compiled function can do this, since it may already stand on the stack that is not its own:
 * the piece's address is the stack's end. */
#if __SIZEOF_POINTER__ == 8
__asm__(".globaltype __stack_pointer, i64");
#else
__asm__(".globaltype __stack_pointer, i32");
#endif
__attribute__((naked)) void tg_wasm_thread_main(tg_wasm_thread *self) {
    __asm__("local.get 0\n"
            "global.set __stack_pointer\n"
            "local.get 0\n"
            "call tg_wasm_thread_run\n"
            "unreachable");
}

void tg_wasm_thread_died(tg_wasm_thread *self) {
    (void)self;
    atomic_store(&died, 1);
}

/* ------------------------------------------------------------------------------ for base/thread.c
 */

/* The stack has the size that it has: kernels use a few kilobytes of it. */
bool tg_os_thread_start(tg_os_thread *thread, size_t stack_bytes, void *(*fn)(void *), void *arg) {
    (void)stack_bytes;
    tg_wasm_thread *idle = threads;
    while (idle && atomic_load(&idle->busy)) idle = idle->next;
    if (!idle) return false;
    idle->fn = fn;
    idle->arg = arg;
    atomic_store(&idle->busy, 1);
    tg_os_wake_all(&idle->busy);
    thread->handle = (uintptr_t)idle;
    return true;
}

void tg_os_thread_join(tg_os_thread thread) {
    tg_wasm_thread *self = (tg_wasm_thread *)thread.handle;
    while (atomic_load(&self->busy)) tg_os_wait(&self->busy, 1);
}

/* The instruction with nothing around it: inlined where its operands are computed, the first-tier
 * compiler of V8 11 (Node 20) lets a thread sleep at address 0. */
__attribute__((noinline)) static void sleep_on(_Atomic uint32_t *word, uint32_t expected,
                                               int64_t ns) {
    __builtin_wasm_memory_atomic_wait32((int *)(void *)word, (int)expected, ns);
}

/* The engine wakes now and then to see whether the one that it waits for is still alive. The others
 * need not: they end with their workers. */
void tg_os_wait(_Atomic uint32_t *word, uint32_t expected) {
    sleep_on(word, expected, in_thread ? WAIT_FOR_EVER_NS : ENGINE_NAP_NS);
    if (atomic_load(&died)) __builtin_trap();
}

void tg_os_wake_all(_Atomic uint32_t *word) {
    __builtin_wasm_memory_atomic_notify((int *)(void *)word, UINT32_MAX);
}

/* There is no instruction that lets a neighbour have the core; the look at the word is all. */
void tg_os_pause(void) {}
