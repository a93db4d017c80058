#pragma once
#include <stddef.h>
// Counts what one thread takes from the heap: for tests only.
//
// Linked into a program, this takes the place of the C library's malloc and its kin for the whole process and passes
// every call on to it; a thread that counts adds up its own calls.

/// Whether calls are counted at all; not under a sanitizer, which has a malloc of its own.
int thicket_allocations_are_counted(void);
/// Begins counting the calls of this thread at 0.
void thicket_allocations_begin(void);
/// Ends counting; gives the calls of malloc, calloc, realloc and aligned_alloc since the beginning.
long thicket_allocations_end(void);
/// Bytes of the largest single call between the last beginning and its end.
size_t thicket_allocations_largest(void);
