// support/end_processes.h: how processes of ours are ended.
#pragma once

#include <sys/types.h>

#include <map>

namespace opguard {

// SIGTERM to all, and SIGKILL to what is still there grace_ms later. By pid; true: with the process
// group that it leads, or led.
void end_processes(const std::map<pid_t, bool>& processes, int grace_ms);

}  // namespace opguard
