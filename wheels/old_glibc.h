// Included before every file of the wheel's build (toolchain.py). The build sees the headers of glibc 2.31, and these
// lines take back the few things in them that glibc 2.28 does not have.
#ifndef __ASSEMBLER__

// pthread_cond_clockwait came with glibc 2.30. old_glibc.c calls it where the system has it.
#define pthread_cond_clockwait stoker_cond_clockwait

// So did its relatives for std::timed_mutex and std::shared_timed_mutex. Without them those wait on the wall clock.
#ifdef __cplusplus
#include <bits/c++config.h>
#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK
#undef _GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK
#endif

// glibc 2.29 gave these functions a new version, without the error handling of SVID. The values are the same.
#ifdef __x86_64__
__asm__(
    ".symver exp, exp@GLIBC_2.2.5\n"
    ".symver exp2, exp2@GLIBC_2.2.5\n"
    ".symver log, log@GLIBC_2.2.5\n"
    ".symver log2, log2@GLIBC_2.2.5\n"
    ".symver pow, pow@GLIBC_2.2.5\n");
#endif

#endif
