// runtime/fingerprint/parallel.h: a loop over independent tasks on a few threads of our own.
#pragma once

#include <cstddef>
#include <functional>

namespace opguard {

// Calls work(i) once for every i below `tasks`, on the calling thread and on at most threads - 1
// others. These sleep between calls, take no signals and never touch Python. While another thread's
// loop has them, or where none can be started, the caller does all. A forked child begins with
// none. work must not throw.
void parallel_for(size_t tasks, unsigned threads, const std::function<void(size_t)>& work);

// Threads started so far in this process.
unsigned parallel_threads();

}  // namespace opguard
