// What Debian 12's libstdc++.a and the C++ headers take from a glibc newer than 2.28. toolchain.py adds it to
// libc_nonshared.a, with which every program and shared library is linked.
#define _GNU_SOURCE
#undef pthread_cond_clockwait
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define HIDDEN __attribute__((visibility("hidden")))

// glibc 2.32: nonzero while the process has only one thread. Zero is always right: reference counts are then atomic.
HIDDEN char __libc_single_threaded;

// glibc 2.36: std::random_device draws from it.
HIDDEN uint32_t arc4random(void) {
  uint32_t number;
  if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) abort();
  return number;
}

// glibc 2.30: waits on the monotonic clock. Older systems get a wait on the wall clock, for the time that is left.
HIDDEN int stoker_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                 const struct timespec* until) {
  typedef int Wait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  static Wait* const kUnknown = (Wait*)1;
  static Wait* of_system = (Wait*)1;
  Wait* wait = __atomic_load_n(&of_system, __ATOMIC_ACQUIRE);
  if (wait == kUnknown) {
    wait = (Wait*)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
    __atomic_store_n(&of_system, wait, __ATOMIC_RELEASE);
  }
  if (wait != NULL) return wait(condition, mutex, clock, until);

  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - now.tv_sec;
  wall.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec < 0) wall.tv_nsec += 1000000000L, --wall.tv_sec;
  if (wall.tv_nsec >= 1000000000L) wall.tv_nsec -= 1000000000L, ++wall.tv_sec;
  return pthread_cond_timedwait(condition, mutex, &wall);
}
