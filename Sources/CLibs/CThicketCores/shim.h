// Cores of a thread: calls that the C library hides from Swift.
#pragma once
#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

// The first 64 cores that the calling thread may use, a bit each; 0: the kernel does not say.
static inline uint64_t thicket_cores(void) {
    uint64_t mask[16] = {0};
    return syscall(SYS_sched_getaffinity, 0, sizeof mask, mask) < 0 ? 0 : mask[0];
}

// Keeps the calling thread, and what it starts from now on, to these of the first 64 cores. 0, or an error's number.
static inline int thicket_use_cores(uint64_t mask) {
    return syscall(SYS_sched_setaffinity, 0, sizeof mask, &mask) < 0 ? errno : 0;
}
