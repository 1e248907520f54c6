/* Loaded before the C library into a program under test. Shifts the wall clock,
 * and stops the process at a chosen step of its file work. What to do stands in
 * a small file that the test writes and every process of it maps:
 *
 *   bytes 0..8    nanoseconds to add to the wall clock, signed
 *   bytes 8..16   1: stop at the next creation of a folder whose path contains
 *                 the fragment; becomes 2 when that was done
 *   bytes 16..    the fragment, ended by a zero
 *
 * The monotonic clock is left alone: it cannot jump. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct orders {
    volatile int64_t shift;
    volatile int64_t stop;
    char fragment[240];
};

static struct orders *orders;

__attribute__((constructor)) static void map_orders(void) {
    const char *path = getenv("SLIPWAY_TEST_ORDERS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(0, sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) orders = mapped;
}

static void shift(struct timespec *time) {
    if (!orders) return;
    int64_t nanos = time->tv_sec * 1000000000LL + time->tv_nsec + orders->shift;
    time->tv_sec = nanos / 1000000000LL;
    time->tv_nsec = nanos % 1000000000LL;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int answer = (int)syscall(SYS_clock_gettime, clock, time);
    if (answer == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) shift(time);
    return answer;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *answer) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (answer) *answer = now.tv_sec;
    return now.tv_sec;
}

int mkdir(const char *path, mode_t mode) {
    static int (*next)(const char *, mode_t);
    if (!next) next = (int (*)(const char *, mode_t))dlsym(RTLD_NEXT, "mkdir");
    if (orders && orders->stop == 1 && strstr(path, orders->fragment)) {
        orders->stop = 2;
        /* The whole process stops here, and goes on from here. The signal goes to
         * this thread: sent to the process, another thread may take it, and this
         * one would go on for a while. */
        raise(SIGSTOP);
    }
    return next(path, mode);
}
