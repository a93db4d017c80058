#pragma once
// Renaming two files into each other's place, and into a free place only, and asking whether somebody writes to a file:
// the C library hides these behind _GNU_SOURCE. And a call that Swift cannot make for its number of arguments.
#include <errno.h>
#include <fcntl.h>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/// 0, or an errno. The two names change their files in one step.
static inline int thicket_rename_exchange(const char *one, const char *other) {
    return syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, 2u) == 0 ? 0 : errno;
}
/// 0, or an errno: EEXIST when `to` is there already.
static inline int thicket_rename_new(const char *from, const char *to) {
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1u) == 0 ? 0 : errno;
}
/// 1 when somebody has the file open for writing, 0 when nobody has, or when the file system cannot tell. `fd` is open
/// for reading only. A lease for reading is given only while there is no writer (fcntl(2), F_SETLEASE).
static inline int thicket_has_writer(int fd) {
    const int set_lease = 1024;
    if (fcntl(fd, set_lease, F_RDLCK) == 0) {
        fcntl(fd, set_lease, F_UNLCK);
        return 0;
    }
    return errno == EAGAIN;
}
/// No core file of this process, and nobody but the administrator looks into its memory. 0, or an errno.
static inline int thicket_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : errno; }
#else
#include <stdio.h>

/// 0: this system has nothing of the kind.
static inline int thicket_forbid_dumps(void) { return 0; }

/// 0: this system cannot tell.
static inline int thicket_has_writer(int fd) { return 0; }
static inline int thicket_rename_exchange(const char *one, const char *other) {
    return renamex_np(one, other, RENAME_SWAP) == 0 ? 0 : errno;
}
static inline int thicket_rename_new(const char *from, const char *to) {
    return renamex_np(from, to, RENAME_EXCL) == 0 ? 0 : errno;
}
#endif
