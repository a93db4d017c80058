#pragma once
#include <sqlite3.h>

/// Turns off SQLite's memory statistics, which take a lock in every heap call. Only before the first use of SQLite.
static inline int thicket_sqlite_forget_memory(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
