// Counts allocations and clock readings of a process it is preloaded into (LD_PRELOAD). Not for products.
// glibc only: the real functions are reached by glibc's own second names.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

struct count_malloc_figures {
  uint64_t allocations;  // by every thread
  uint64_t main_thread;  // of these, by the process's first thread: the consumer and Python
  uint64_t libjpeg;      // of these, asked for by libjpeg itself: its pools, one set per image
  uint64_t clock_reads;  // clock_gettime, every thread
};

static atomic_ullong allocations, main_thread, libjpeg, clock_reads;
static atomic_uintptr_t jpeg_low, jpeg_high;
static __thread char is_main;  // set by the constructor, in the thread that runs it

static void count(const void* caller) {
  atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
  if (is_main) atomic_fetch_add_explicit(&main_thread, 1, memory_order_relaxed);
  const uintptr_t at = (uintptr_t)caller;
  if (at >= atomic_load_explicit(&jpeg_low, memory_order_relaxed) &&
      at < atomic_load_explicit(&jpeg_high, memory_order_relaxed)) {
    atomic_fetch_add_explicit(&libjpeg, 1, memory_order_relaxed);
  }
}

void* malloc(size_t size) {
  count(__builtin_return_address(0));
  return __libc_malloc(size);
}
void* calloc(size_t items, size_t size) {
  count(__builtin_return_address(0));
  return __libc_calloc(items, size);
}
void* realloc(void* old, size_t size) {
  count(__builtin_return_address(0));
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  count(__builtin_return_address(0));
  void* got = __libc_memalign(alignment, size);
  if (got == NULL) return ENOMEM;
  *out = got;
  return 0;
}

static int (*real_clock_gettime)(clockid_t, struct timespec*);

int clock_gettime(clockid_t clock, struct timespec* at) {
  if (real_clock_gettime == NULL) {
    *(void**)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  }
  atomic_fetch_add_explicit(&clock_reads, 1, memory_order_relaxed);
  return real_clock_gettime(clock, at);
}

static int find_libjpeg(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size;
  (void)unused;
  if (info->dlpi_name == NULL || strstr(info->dlpi_name, "libjpeg") == NULL) return 0;
  uintptr_t low = UINTPTR_MAX, high = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, end = start + info->dlpi_phdr[i].p_memsz;
    low = start < low ? start : low;
    high = end > high ? end : high;
  }
  atomic_store(&jpeg_low, low);
  atomic_store(&jpeg_high, high);
  return 1;
}

__attribute__((constructor)) static void start(void) {
  is_main = 1;
}

// Called by the benchmark once the engine, and so libjpeg, is loaded. Returns whether libjpeg was found.
int count_malloc_find_libjpeg(void) {
  return dl_iterate_phdr(find_libjpeg, NULL);
}

void count_malloc_read(struct count_malloc_figures* out) {
  out->allocations = atomic_load(&allocations);
  out->main_thread = atomic_load(&main_thread);
  out->libjpeg = atomic_load(&libjpeg);
  out->clock_reads = atomic_load(&clock_reads);
}

// Nanoseconds that one reading of the monotonic clock costs, without this library's counting.
double count_malloc_clock_read_ns(void) {
  enum { kReads = 1000000 };
  struct timespec at, first, last;
  clock_gettime(CLOCK_MONOTONIC, &at);
  real_clock_gettime(CLOCK_MONOTONIC, &first);
  for (int i = 0; i < kReads; ++i) real_clock_gettime(CLOCK_MONOTONIC, &at);
  real_clock_gettime(CLOCK_MONOTONIC, &last);
  return ((double)(last.tv_sec - first.tv_sec) * 1e9 + (double)(last.tv_nsec - first.tv_nsec)) / kReads;
}
