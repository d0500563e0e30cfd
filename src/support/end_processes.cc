#include "support/end_processes.h"

#include <poll.h>
#include <signal.h>

namespace opguard {

void end_processes(const std::map<pid_t, bool>& processes, int grace_ms) {
  constexpr int kLookMs = 50;
  auto send = [&](int signal) {
    bool any = false;
    for (const auto& [pid, group] : processes) any |= kill(group ? -pid : pid, signal) == 0;
    return any;
  };
  if (!send(SIGTERM)) return;
  send(SIGCONT);  // one that was stopped takes no SIGTERM
  for (int waited = 0; waited < grace_ms && send(0); waited += kLookMs) poll(nullptr, 0, kLookMs);
  send(SIGKILL);
}

}  // namespace opguard
