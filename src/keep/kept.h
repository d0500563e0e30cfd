// keep/kept.h: the tool's variables, kept in the environment of every program that is started.
//
// A launch script may drop them: `env -i python train.py`, `LD_PRELOAD=libjemalloc.so python ...`,
// subprocess.run(..., env={...}). Each process copies them when it begins, and completes the
// environment that it gives to the next:
//   LD_PRELOAD=/x/jemalloc.so     becomes  LD_PRELOAD=/x/jemalloc.so:/.../opguard_keep.so
//   (nothing of ours left)        gets all of ours back
//   (ours there, one of them not) the program has unset that one, and it stays so
// Nothing else is touched; a complete environment is passed on as it is.
// Cost: one look at each variable's first letters per program started.
#pragma once

#include <cstddef>

namespace opguard::keep {

// Names of the variables that OPGUARD_KEEP lists, which are ours.
inline constexpr char kNames[] = "OPGUARD_KEEP";
// Libraries that LD_PRELOAD must name, separated by colons.
inline constexpr char kLibraries[] = "OPGUARD_PRELOAD";

// Copies what is ours out of the environment. Once, before main.
void take(const char* const* environment);

// Bytes that `completed` needs for this environment; 0: nothing is missing.
size_t missing_bytes(const char* const* environment);

// The environment with ours, written into `room`. Allocates nothing: between vfork and exec the
// memory is the parent's.
char* const* completed(char* const* environment, void* room);

// Completes this process's own environment, for functions that pass it on unseen (system, popen).
void complete_own();

}  // namespace opguard::keep
