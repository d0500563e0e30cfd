// The parent catches the three signals that ask it to end and only notes them. The children get the
// handlers of before back, since their programs are launched as from any command
// (support/launch.h).
//
//   Ctrl-C          the terminal's whole group gets it, and each child ends its program
//   kill of us      wait_for_one() hands it on to the children, and waits for them
//   kill -9 of us   PR_SET_PDEATHSIG: the kernel sends each child a SIGTERM
//
// A parent may have died before that was set: the child compares its parent with the one it was
// forked by.
#include "session/child_jobs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "support/diagnostics.h"
#include "support/say.h"

namespace opguard {
namespace {

constexpr int kAsks[] = {SIGINT, SIGTERM, SIGHUP};
// The last such signal; 0: none.
volatile sig_atomic_t asked_by = 0;
// Of kAsks, as they were when the jobs began. What was ignored stays ignored (nohup).
struct sigaction before[3];

void note_signal(int signal) { asked_by = signal; }

}  // namespace

ChildJobs::ChildJobs() {
  asked_by = 0;
  struct sigaction action = {};
  action.sa_handler = note_signal;  // without SA_RESTART: waitpid returns
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 3; ++i) {
    sigaction(kAsks[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(kAsks[i], &action, nullptr);
  }
}

// Those that still run are asked to end, and waited for: their files are whole then.
ChildJobs::~ChildJobs() {
  for (const auto& [pid, number] : children_) kill(pid, SIGTERM);
  for (const auto& [pid, number] : children_)
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  for (int i = 0; i < 3; ++i) sigaction(kAsks[i], &before[i], nullptr);
}

// What is buffered is flushed before the fork, or the child would print it a second time.
llvm::Error ChildJobs::start(uint32_t number, const std::string& output,
                             const std::function<void()>& work) {
  const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (out < 0) return make_error("cannot write '" + output + "': " + std::strerror(errno));
  std::fflush(nullptr);
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    // A killed parent asks its children to end; they end their programs.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    for (int i = 0; i < 3; ++i) sigaction(kAsks[i], &before[i], nullptr);
    set_outside(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    work();
    std::fflush(nullptr);
    _exit(0);
  }
  const int why = errno;
  close(out);
  if (pid < 0) return make_error(std::string("cannot start a process: ") + std::strerror(why));
  children_[pid] = number;
  return llvm::Error::success();
}

// Asked to end, it asks the children once and goes on waiting.
uint32_t ChildJobs::wait_for_one() {
  bool told = false;
  while (true) {
    if (asked_by && !told) {
      told = true;
      for (const auto& [pid, number] : children_) kill(pid, SIGTERM);
    }
    const pid_t pid = waitpid(-1, nullptr, 0);
    if (pid < 0 && errno != EINTR) break;
    const auto at = children_.find(pid);
    if (at == children_.end()) continue;
    const uint32_t number = at->second;
    children_.erase(at);
    return number;
  }
  const uint32_t number = children_.begin()->second;
  children_.erase(children_.begin());
  return number;
}

llvm::Error ChildJobs::stopped() const {
  if (!asked_by) return llvm::Error::success();
  return make_error("stopped by signal " + std::to_string(asked_by) + " (" + strsignal(asked_by) +
                    ")");
}

}  // namespace opguard
