#pragma once
// Parts of the C library's headers that Swift does not import: declarations hidden behind _GNU_SOURCE, flag macros and
// the packed epoll_event. No state, because file-scope variables of a header are not emitted.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

extern int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);

static inline uint32_t thicket_epoll_interest(int reads, int writes) {
    return (reads ? EPOLLIN : 0) | (writes ? EPOLLOUT : 0);
}
// Added to an interest: edge-triggered, so that a broken connection, which is always reported, is reported only once.
static inline uint32_t thicket_epoll_once(void) { return EPOLLET; }
static inline int thicket_epoll_is_writable(uint32_t events) { return (events & EPOLLOUT) != 0; }
static inline int thicket_epoll_is_readable(uint32_t events) { return (events & EPOLLIN) != 0; }
static inline int thicket_epoll_is_broken(uint32_t events) { return (events & (EPOLLERR | EPOLLHUP)) != 0; }

static inline int thicket_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

static inline int thicket_epoll_add(int poll, int fd, uint32_t events, uint64_t token) {
    struct epoll_event event = {.events = events, .data.u64 = token};
    return epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
}

static inline int thicket_epoll_change(int poll, int fd, uint32_t events, uint64_t token) {
    struct epoll_event event = {.events = events, .data.u64 = token};
    return epoll_ctl(poll, EPOLL_CTL_MOD, fd, &event);
}

static inline int thicket_epoll_remove(int poll, int fd) { return epoll_ctl(poll, EPOLL_CTL_DEL, fd, NULL); }

// `events` must have space for `count` times this many bytes.
static inline size_t thicket_epoll_event_size(void) { return sizeof(struct epoll_event); }
static inline int thicket_epoll_wait(int poll, void *events, int count, int timeout_ms) {
    return epoll_wait(poll, (struct epoll_event *)events, count, timeout_ms);
}
static inline uint64_t thicket_epoll_token(const void *events, int index) {
    return ((const struct epoll_event *)events)[index].data.u64;
}
static inline uint32_t thicket_epoll_events(const void *events, int index) {
    return ((const struct epoll_event *)events)[index].events;
}

static inline int thicket_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

// Blocks the three signals for this thread and the threads that it starts, and ignores SIGPIPE and SIGXFSZ: a write to
// a file that may not grow must fail instead of ending the process.
static inline int thicket_block_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    return pthread_sigmask(SIG_BLOCK, &set, NULL);
}
static inline int thicket_signalfd(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
// The next signal, or 0.
static inline int thicket_read_signal(int fd) {
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

// The main thread's heap grows by 1 MiB, and all heaps shrink from 16 MiB on; growth by single pages would be a system
// call each. Blocks below 512 KiB come from the heap, so that frames are not mapped and unmapped; larger ones, such as
// the texts and trees of large objects, are mapped, because they would leave holes in the heap.
static inline void thicket_tune_heap(void) {
    mallopt(M_TOP_PAD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 16 << 20);
    mallopt(M_MMAP_THRESHOLD, 512 << 10);
}

// The heaps of other threads still grow by single pages (glibc 2.36 pads only the main one): a system call per 4 KiB. A
// block that is allocated and freed leaves its memory at the end of the heap. It must be smaller than the threshold of
// mapped blocks.
static inline void thicket_pad_heap(void) {
    void *volatile block = malloc(500 << 10);
    free(block);
}

// Number of cores that the calling thread may use; 0 when the kernel does not report them, or for more than 8,192.
static inline int32_t thicket_core_count(void) {
    uint64_t mask[128] = {0};
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    int32_t count = 0;
    for (long index = 0; index < bytes / 8; index++) count += __builtin_popcountll(mask[index]);
    return count;
}

static inline int64_t thicket_monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Asks the kernel (Linux 6.12 and later) for time slices of this many nanoseconds for the calling thread: with short
// slices it preempts a running thread when it wakes up. Older kernels accept the call and ignore it.
static inline int thicket_short_slices(uint64_t nanoseconds) {
    // struct sched_attr of the kernel; the C library has neither it nor the calls.
    struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t runtime, deadline, period;
    } slices = {0};
    if (syscall(SYS_sched_getattr, 0, &slices, sizeof slices, 0) != 0) return errno;
    slices.size = sizeof slices;
    slices.flags = 0;
    slices.runtime = nanoseconds;
    return syscall(SYS_sched_setattr, 0, &slices, 0) == 0 ? 0 : errno;
}

// Raises the soft limit of open files to the hard limit. Returns the current limit, or -1.
static inline int64_t thicket_raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit.rlim_cur = limit.rlim_max;
    }
    return limit.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t)limit.rlim_cur;
}

// Makes the kernel allocate its table for descriptors below `count` at once. Otherwise it doubles the table as needed,
// and each time all threads that open or close a descriptor wait for a grace period of the whole machine: 10 to 100 ms.
static inline void thicket_reserve_descriptors(int fd, int count) {
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, count - 1);
    if (copy >= 0) close(copy);
}

static inline int thicket_accept(int fd) { return accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC); }
static inline void thicket_no_delay(int fd) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}
// Closes a connection whose peer acknowledges nothing for this long; the kernel's default is a quarter of an hour.
static inline void thicket_user_timeout(int fd, unsigned int milliseconds) {
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}
// Bound of unsent bytes, beyond the peer's window, that the kernel accepts and buffers; connections inherit it from
// their listener. Otherwise on a fast network the kernel accepts megabytes in one call, and buffers them until the peer
// reads.
static inline void thicket_unsent_max(int fd, unsigned int bytes) {
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}
static inline ssize_t thicket_send(int fd, const void *bytes, size_t count) {
    return send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
}
// The socket does not block. The file does, unless its pages are in memory.
static inline ssize_t thicket_sendfile(int socket, int file, int64_t offset, size_t count) {
    off_t place = offset;
    return sendfile(socket, file, &place, count);
}
static inline ssize_t thicket_receive(int fd, void *bytes, size_t count) {
    return recv(fd, bytes, count, MSG_DONTWAIT);
}
// Leaves the bytes in the socket.
static inline ssize_t thicket_peek(int fd, void *bytes, size_t count) {
    return recv(fd, bytes, count, MSG_DONTWAIT | MSG_PEEK);
}
static inline int thicket_shut_write(int fd) { return shutdown(fd, SHUT_WR); }
// Bytes received before can still be read, followed by the end.
static inline int thicket_shut(int fd) { return shutdown(fd, SHUT_RDWR); }
static inline int thicket_has_input(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
}

// Binds and listens on the first address of host:port that works. Returns the socket, or -errno, or -10000 plus the
// resolver's (negative) code.
static inline int thicket_listen_tcp(const char *host, const char *port, int backlog) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *list = NULL;
    int resolved = getaddrinfo(*host ? host : NULL, port, &hints, &list);
    if (resolved != 0) return -10000 + resolved;
    int result = -EADDRNOTAVAIL;
    for (struct addrinfo *each = list; each; each = each->ai_next) {
        int fd = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) { result = -errno; continue; }
        int one = 1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, each->ai_addr, each->ai_addrlen) == 0 && listen(fd, backlog) == 0) { result = fd; break; }
        result = -errno;
        close(fd);
    }
    freeaddrinfo(list);
    return result;
}

// The port to which a TCP socket is bound, or -errno.
static inline int thicket_local_port(int fd) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) return -errno;
    if (address.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&address)->sin_port);
    if (address.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return 0;
}

// The address of the peer (peer != 0) or of this end. Writes 4 or 16 bytes and returns their number; 0 without an
// address.
static inline int thicket_address_bytes(int fd, int peer, unsigned char *bytes) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    int result = peer ? getpeername(fd, (struct sockaddr *)&address, &size)
        : getsockname(fd, (struct sockaddr *)&address, &size);
    if (result != 0) return 0;
    if (address.ss_family == AF_INET) {
        memcpy(bytes, &((struct sockaddr_in *)&address)->sin_addr, 4);
        return 4;
    }
    if (address.ss_family != AF_INET6) return 0;
    memcpy(bytes, &((struct sockaddr_in6 *)&address)->sin6_addr, 16);
    return 16;
}

static inline int thicket_unix_address(const char *path, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address->sun_path) return -ENAMETOOLONG;
    strcpy(address->sun_path, path);
    return 0;
}

// Listens on a Unix-domain socket that only this user may open. A socket file without a listener is replaced; one with
// a listener, or a file that is not a socket, is left unchanged. Returns the socket or -errno.
static inline int thicket_listen_unix(const char *path, int backlog) {
    struct sockaddr_un address;
    int named = thicket_unix_address(path, &address);
    if (named != 0) return named;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    struct stat status;
    if (lstat(path, &status) == 0) {
        int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int answers = probe >= 0 && connect(probe, (struct sockaddr *)&address, sizeof address) == 0;
        int refused = !answers && errno == ECONNREFUSED;
        if (probe >= 0) close(probe);
        if (!S_ISSOCK(status.st_mode) || !refused) { close(fd); return -EADDRINUSE; }
        unlink(path);
    }
    // Linux gives the file the mode of the socket. A umask during the call would apply to all threads: other threads
    // would create files with it, and two such calls at the same time could leave it set.
    int bound = fchmod(fd, 0600) == 0 ? bind(fd, (struct sockaddr *)&address, sizeof address) : -1;
    int problem = errno;
    if (bound != 0 || listen(fd, backlog) != 0) {
        if (bound == 0) problem = errno;
        close(fd);
        return -problem;
    }
    return fd;
}

// Connects to a Unix-domain socket, blocking. Returns the socket or -errno.
static inline int thicket_connect_unix(const char *path) {
    struct sockaddr_un address;
    int named = thicket_unix_address(path, &address);
    if (named != 0) return named;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    int problem = errno;
    close(fd);
    return -problem;
}

// Connects to a numeric address, blocking. Returns the socket or -errno.
static inline int thicket_connect_tcp(const char *host, const char *port) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    if (getaddrinfo(host, port, &hints, &list) != 0) return -EHOSTUNREACH;
    int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result = fd < 0 ? -errno : fd;
    if (fd >= 0 && connect(fd, list->ai_addr, list->ai_addrlen) != 0) {
        result = -errno;
        close(fd);
    }
    freeaddrinfo(list);
    return result;
}

// A descriptor that is closed when accept fails for lack of one, so that the connection can be answered.
static inline int thicket_spare_descriptor(void) { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

// The current second as an HTTP date (RFC 9110, 5.6.7). Returns the bytes written, 0 when `size` is too small.
static inline int thicket_http_date(char *text, int size) {
    const char *days = "SunMonTueWedThuFriSat";
    const char *months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    int count = snprintf(
        text, (size_t)size, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + 3 * parts.tm_wday, parts.tm_mday,
        months + 3 * parts.tm_mon, parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
    return count > 0 && count < size ? count : 0;
}
// Without MSG_DONTWAIT, for command-line clients and tests.
static inline ssize_t thicket_send_blocking(int fd, const void *bytes, size_t count) {
    return send(fd, bytes, count, MSG_NOSIGNAL);
}
