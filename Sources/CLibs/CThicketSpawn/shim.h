// Starting programs: a call that the C library hides from Swift.
#pragma once
#include <spawn.h>

#ifndef __USE_MISC
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
#endif

// The program gets its three first descriptors and no other: whoever waits for the end of a pipe would else wait for each
// program that was started meanwhile, too. 0, or an error's number.
static inline int thicket_keep_three(posix_spawn_file_actions_t *actions) {
    return posix_spawn_file_actions_addclosefrom_np(actions, 3);
}
