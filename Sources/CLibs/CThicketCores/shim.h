// Processor cores of a thread, and its preemption timer: calls that the C library hides from Swift.
#pragma once
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// The first 64 cores that the calling thread may use, one bit each; 0 when the kernel does not report them.
static inline uint64_t thicket_cores(void) {
    uint64_t mask[16] = {0};
    return syscall(SYS_sched_getaffinity, 0, sizeof mask, mask) < 0 ? 0 : mask[0];
}

// Restricts the calling thread, and threads that it starts later, to these of the first 64 cores. Returns 0 or an
// errno.
static inline int thicket_use_cores(uint64_t mask) {
    return syscall(SYS_sched_setaffinity, 0, sizeof mask, &mask) < 0 ? errno : 0;
}

// The preemption timer of a thread, and its counters. Used only by this thread and the signal that interrupts it.
typedef struct {
    timer_t timer;
    // Nanoseconds from the begin of work to the first yield, and between two yields during the same work.
    long first, next;
    // Whether the timer is armed.
    volatile sig_atomic_t is_set;
    // Whether the thread is working.
    volatile sig_atomic_t works;
    // Whether the thread has yielded during the current work already.
    volatile sig_atomic_t lasts;
    // Number of yields, and how often the timer was armed.
    volatile sig_atomic_t turns, sets;
} thicket_preemption_timer;

// Arms the timer for one expiry.
static inline void thicket_set_preemption_timer(thicket_preemption_timer *preemption, long nanoseconds) {
    struct itimerspec time = {{0, 0}, {0, nanoseconds}};
    preemption->is_set = 1;
    preemption->sets = preemption->sets + 1;
    if (timer_settime(preemption->timer, 0, &time, NULL) < 0) preemption->is_set = 0;
}

// Signal handler: yields the core to other threads that are ready. It must not change any state of the interrupted
// code.
static inline void thicket_give_way(int number, siginfo_t *about, void *context) {
    (void)number, (void)context;
    // The signal may also have another source than the timer.
    if (about->si_code != SI_TIMER) return;
    thicket_preemption_timer *preemption = about->si_value.sival_ptr;
    int before = errno;
    preemption->is_set = 0;
    if (preemption->works) {
        syscall(SYS_sched_yield);
        preemption->turns = preemption->turns + 1;
        long wait = preemption->lasts ? preemption->next : preemption->first;
        preemption->lasts = 1;
        thicket_set_preemption_timer(preemption, wait);
    }
    errno = before;
}

// Creates the timer, not yet armed; its signal makes the calling thread yield. Returns 0 or an errno.
static inline int thicket_make_preemption_timer(thicket_preemption_timer *preemption) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = thicket_give_way;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
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
    event.sigev_value.sival_ptr = preemption;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    return timer_create(CLOCK_MONOTONIC, &event, &preemption->timer) < 0 ? errno : 0;
}

// Marks the begin of work.
static inline void thicket_preemption_timer_begin(thicket_preemption_timer *preemption) {
    preemption->lasts = 0;
    preemption->works = 1;
    // A timer that was armed for earlier work is kept and expires during this one; many short pieces of work would
    // otherwise each pay for a system call.
    if (!preemption->is_set) thicket_set_preemption_timer(preemption, preemption->first);
}

static inline void thicket_preemption_timer_end(thicket_preemption_timer *preemption) { preemption->works = 0; }
