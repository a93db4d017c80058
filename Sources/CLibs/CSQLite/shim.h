#pragma once
#include <sqlite3.h>

/// Takes SQLite's count of its memory, and the lock around it, out of every call of the heap. Only before its first use.
static inline int thicket_sqlite_forget_memory(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
