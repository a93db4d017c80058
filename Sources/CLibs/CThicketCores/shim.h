// Cores of a thread: calls that the C library hides from Swift.
#pragma once
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
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

// Lets other threads that are ready have the core. Of what a signal interrupts nothing may change.
static inline void thicket_give_way(int number) {
    (void)number;
    int before = errno;
    syscall(SYS_sched_yield);
    errno = before;
}

// A timer, not yet running, whose signal has the calling thread give way. 0, or an error's number.
static inline int thicket_make_pacer(timer_t *timer) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = thicket_give_way;
    action.sa_flags = SA_RESTART;
    if (sigaction(SIGURG, &action, NULL) < 0) return errno;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGURG);
    int error = pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    if (error != 0) return error;
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGURG;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    return timer_create(CLOCK_MONOTONIC, &event, timer) < 0 ? errno : 0;
}

// Has the timer go off each so many nanoseconds; 0 stops it.
static inline void thicket_pace(timer_t timer, long nanoseconds) {
    struct itimerspec time = {{0, nanoseconds}, {0, nanoseconds}};
    timer_settime(timer, 0, &time, NULL);
}

// Whether the timer is to go off.
static inline int thicket_is_pacing(timer_t timer) {
    struct itimerspec time;
    return timer_gettime(timer, &time) == 0 && (time.it_value.tv_sec != 0 || time.it_value.tv_nsec != 0);
}
