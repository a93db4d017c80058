#pragma once
// Calls that the C library hides behind _GNU_SOURCE: exchanging two files, renaming without replacing, and checking for
// writers of a file. Also a variadic call, which Swift does not import.
#include <errno.h>
#include <fcntl.h>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/// Exchanges the files of two names in one atomic step. Returns 0 or an errno.
static inline int thicket_rename_exchange(const char *one, const char *other) {
    return syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, 2u) == 0 ? 0 : errno;
}
/// Renames without replacing: EEXIST when `to` exists already. Returns 0 or an errno.
static inline int thicket_rename_new(const char *from, const char *to) {
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1u) == 0 ? 0 : errno;
}
/// 1 when a process has the file open for writing, 0 when none has, or when the file system cannot report it. `fd` must
/// be open for reading only. A read lease is granted only while there is no writer (fcntl(2), F_SETLEASE).
static inline int thicket_has_writer(int fd) {
    const int set_lease = 1024;
    if (fcntl(fd, set_lease, F_RDLCK) == 0) {
        fcntl(fd, set_lease, F_UNLCK);
        return 0;
    }
    return errno == EAGAIN;
}
/// Disables core files of this process, and access to its memory except for the administrator. Returns 0 or an errno.
static inline int thicket_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : errno; }
#else
#include <stdio.h>

/// Returns 0: not available on this system.
static inline int thicket_forbid_dumps(void) { return 0; }

/// Returns 0: this system cannot report it.
static inline int thicket_has_writer(int fd) { return 0; }
static inline int thicket_rename_exchange(const char *one, const char *other) {
    return renamex_np(one, other, RENAME_SWAP) == 0 ? 0 : errno;
}
static inline int thicket_rename_new(const char *from, const char *to) {
    return renamex_np(from, to, RENAME_EXCL) == 0 ? 0 : errno;
}
#endif
