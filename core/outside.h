/* The doors of libraries that are not compiled with MemorySanitizer (OpenBLAS, jansson): what they read is checked
 * there, and what they write counts as written. In every other build these do nothing. */
#ifndef PE_OUTSIDE_H
#define PE_OUTSIDE_H

#include <stddef.h>

#if defined __has_feature
#if __has_feature(memory_sanitizer)
#define PE_HAS_MSAN 1
/* of sanitizer/msan_interface.h */
void __msan_check_mem_is_initialized(const volatile void *bytes, size_t n);
void __msan_unpoison(const volatile void *bytes, size_t n);
void __msan_scoped_disable_interceptor_checks(void);
void __msan_scoped_enable_interceptor_checks(void);
#endif
#endif

/* Between these two a library calls the C library on memory of its own. */
static inline void pe_outside_begins(void)
{
#ifdef PE_HAS_MSAN
    __msan_scoped_disable_interceptor_checks();
#endif
}

static inline void pe_outside_ends(void)
{
#ifdef PE_HAS_MSAN
    __msan_scoped_enable_interceptor_checks();
#endif
}

static inline void pe_outside_reads(const void *bytes, size_t n)
{
    (void)bytes, (void)n;
#ifdef PE_HAS_MSAN
    __msan_check_mem_is_initialized(bytes, n);
#endif
}

static inline void pe_outside_wrote(const void *bytes, size_t n)
{
    (void)bytes, (void)n;
#ifdef PE_HAS_MSAN
    __msan_unpoison(bytes, n);
#endif
}

#endif
