// A wall clock that a test steps: preloaded into a server, it adds the seconds that stand in
// a file, mapped into memory, to what the system says. Monotonic clocks stay as they are.
// (libfaketime does the same, but not beside jemalloc, which redis-server uses.)
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *step;

__attribute__((constructor)) static void open_step(void) {
	int fd = open(getenv("STEPPED_CLOCK"), O_RDONLY);
	void *p = mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		_exit(99);
	step = p;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
	int rc = syscall(SYS_clock_gettime, id, ts);
	if (rc == 0 && step && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ts->tv_sec += *step;
	return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
	struct timespec ts;
	(void)zone;
	int rc = clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return rc;
}

time_t time(time_t *out) {
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	if (out)
		*out = ts.tv_sec;
	return ts.tv_sec;
}
