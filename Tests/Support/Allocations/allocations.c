#include "allocations.h"
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

// Initial-exec storage: the usual kind may itself call malloc at a thread's first use.
static __thread long count __attribute__((tls_model("initial-exec")));
static __thread int counts __attribute__((tls_model("initial-exec")));
static __thread size_t largest __attribute__((tls_model("initial-exec")));

static inline void note(size_t size) {
    count++;
    if (size > largest) largest = size;
}

void thicket_allocations_begin(void) {
    count = 0;
    largest = 0;
    counts = 1;
}

long thicket_allocations_end(void) {
    counts = 0;
    return count;
}

size_t thicket_allocations_largest(void) { return largest; }

#if defined(IS_SANITIZED) || !defined(__GLIBC__)
int thicket_allocations_are_counted(void) { return 0; }
#else
int thicket_allocations_are_counted(void) { return 1; }

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
    if (counts) note(size);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    if (counts) note(number * size);
    return __libc_calloc(number, size);
}

void *realloc(void *block, size_t size) {
    if (counts) note(size);
    return __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    if (counts) note(size);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (counts) note(size);
    *block = __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}
#endif
