// Starting programs: a call that the C library hides from Swift.
#pragma once
#include <spawn.h>

#ifndef __USE_MISC
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
#endif

// The program inherits only the first three descriptors. Otherwise a reader that waits for the end of a pipe would also
// wait for every other program started meanwhile. Returns 0 or an errno.
static inline int thicket_keep_three(posix_spawn_file_actions_t *actions) {
    return posix_spawn_file_actions_addclosefrom_np(actions, 3);
}
