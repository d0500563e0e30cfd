#include "support/guardian.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "support/end_processes.h"

namespace opguard {
namespace {

constexpr int kGraceMs = 10000;

enum class What : int32_t { folder, no_folder, child, group, no_child };

struct Message {
  What what = What::folder;
  int32_t pid = 0;
  char path[PATH_MAX] = {};  // ends with a zero
};

int channel = -1;

void tell(What what, pid_t pid, std::string_view path = {}) {
  if (channel < 0 || path.size() >= sizeof(Message::path)) return;
  Message message;
  message.what = what;
  message.pid = pid;
  std::memcpy(message.path, path.data(), path.size());
  // A guardian that somebody has killed is no reason for this process to die.
  while (send(channel, &message, sizeof message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

// One whole message. False: the guarded process has ended.
bool hear(int fd, Message& message) {
  ssize_t n;
  do {
    n = recv(fd, &message, sizeof message, 0);
  } while (n < 0 && errno == EINTR);
  return n == sizeof message;
}

// Not one of the three that a closed stdin or stderr left free.
int above_standard(int fd) {
  if (fd > STDERR_FILENO) return fd;
  const int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(fd);
  return higher;
}

[[noreturn]] void guard(int fd) {
  // Nothing of the guarded process is held: not its terminal, folder, pipes, nor its signals.
  setsid();
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  (void)!chdir("/");
  const int none = open("/dev/null", O_RDWR);
  for (int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(none, standard);
  // By what is open: a limit of a billion descriptors takes minutes to count through.
  std::vector<int> others;
  std::error_code failed;
  for (std::filesystem::directory_iterator it("/proc/self/fd", failed), last; !failed && it != last;
       it.increment(failed))
    others.push_back(std::atoi(it->path().filename().c_str()));
  for (const int other : others)
    if (other > STDERR_FILENO && other != fd) close(other);

  std::set<std::string> folders;
  std::map<pid_t, bool> children;
  for (Message message; hear(fd, message);) {
    switch (message.what) {
      case What::folder:
        folders.insert(message.path);
        break;
      case What::no_folder:
        folders.erase(message.path);
        break;
      case What::child:
      case What::group:
        children[message.pid] = message.what == What::group;
        break;
      case What::no_child:
        children.erase(message.pid);
        break;
    }
  }
  end_processes(children, kGraceMs);
  for (const std::string& folder : folders) std::filesystem::remove_all(folder, failed);
  _exit(0);
}

}  // namespace

void start_guardian() {
  if (channel >= 0) return;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  for (int& fd : ends) fd = above_standard(fd);
  const pid_t pid = ends[0] < 0 || ends[1] < 0 ? -1 : fork();
  if (pid == 0) {
    close(ends[1]);
    guard(ends[0]);
  }
  close(ends[0]);
  if (pid < 0)
    close(ends[1]);
  else
    channel = ends[1];
}

void guard_folder(const std::string& path) { tell(What::folder, 0, path); }
void release_folder(const std::string& path) { tell(What::no_folder, 0, path); }
void guard_child(pid_t pid, bool group) { tell(group ? What::group : What::child, pid); }
void release_child(pid_t pid) { tell(What::no_child, pid); }

}  // namespace opguard
