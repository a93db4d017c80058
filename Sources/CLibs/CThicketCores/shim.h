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

// A thread's turns: its timer, and what it does. One thread uses it, and the signal that interrupts that thread.
typedef struct {
    timer_t timer;
    // Nanoseconds from the begin of work to the first turn, and between two turns of the same work.
    long first, next;
    // Whether the timer is to go off.
    volatile sig_atomic_t is_set;
    // Whether the thread works.
    volatile sig_atomic_t works;
    // Whether it has worked on the same since the last turn.
    volatile sig_atomic_t lasts;
    // Turns in which it gave way, and times that the timer was set.
    volatile sig_atomic_t turns, sets;
} thicket_pacer;

// Has the timer go off once.
static inline void thicket_set_pacer(thicket_pacer *pacer, long nanoseconds) {
    struct itimerspec time = {{0, 0}, {0, nanoseconds}};
    pacer->is_set = 1;
    pacer->sets = pacer->sets + 1;
    if (timer_settime(pacer->timer, 0, &time, NULL) < 0) pacer->is_set = 0;
}

// A turn: lets other threads that are ready have the core. Of what the signal interrupts nothing may change.
static inline void thicket_give_way(int number, siginfo_t *about, void *context) {
    (void)number, (void)context;
    // Others may send the signal too.
    if (about->si_code != SI_TIMER) return;
    thicket_pacer *pacer = about->si_value.sival_ptr;
    int before = errno;
    pacer->is_set = 0;
    if (pacer->works) {
        syscall(SYS_sched_yield);
        pacer->turns = pacer->turns + 1;
        long wait = pacer->lasts ? pacer->next : pacer->first;
        pacer->lasts = 1;
        thicket_set_pacer(pacer, wait);
    }
    errno = before;
}

// Gives a pacer with its times a timer, not yet running, whose signal has the calling thread give way. 0, or an error's number.
static inline int thicket_make_pacer(thicket_pacer *pacer) {
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
    event.sigev_value.sival_ptr = pacer;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    return timer_create(CLOCK_MONOTONIC, &event, &pacer->timer) < 0 ? errno : 0;
}

// The thread begins to work.
static inline void thicket_pacer_begin(thicket_pacer *pacer) {
    pacer->lasts = 0;
    pacer->works = 1;
    // One that was set for earlier work goes off in this one: of many short pieces of work each would pay for it.
    if (!pacer->is_set) thicket_set_pacer(pacer, pacer->first);
}

static inline void thicket_pacer_end(thicket_pacer *pacer) { pacer->works = 0; }
