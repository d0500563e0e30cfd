// The finding lies in a file that has no name any more. The command reads it as its standard input,
// and no copy is left however the command ends. A pipe would not do: its writer would wait for a
// command that does not read.
//
// posix_spawn and no fork: this process has a thread that follows the logs.
#include "session/violation_command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "support/say.h"
#include "support/text.h"

extern char** environ;

namespace opguard {
namespace {

constexpr auto kLongest = std::chrono::seconds(5);
constexpr auto kPause = std::chrono::milliseconds(10);

// A file that is open and has no name any more: -1 where there can be none.
int file_of(const std::string& text) {
  llvm::SmallString<128> path;
  int fd = -1;
  if (llvm::sys::fs::createTemporaryFile("opguard-finding", "json", fd, path)) return -1;
  llvm::sys::fs::remove(path);
  llvm::raw_fd_ostream out(fd, /*shouldClose=*/false);
  out << text;
  out.flush();
  ::lseek(fd, 0, SEEK_SET);
  return fd;
}

// Also true where there is no such child any more.
bool is_over(pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; }

}  // namespace

void ViolationCommand::run(const ViolationFinding& finding, int64_t pid) {
  if (command_.empty()) return;
  std::erase_if(running_, is_over);
  const std::vector<std::string> ours = {
      "OPGUARD_VIOLATION_STEP=" + std::to_string(finding.first.step),
      "OPGUARD_VIOLATION_RANK=" + std::to_string(finding.first.rank),
      "OPGUARD_VIOLATION_PID=" + std::to_string(pid)};
  std::vector<char*> environment;
  for (char** at = environ; *at; ++at) environment.push_back(*at);
  for (const std::string& variable : ours)
    environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  const char* words[] = {"sh", "-c", command_.c_str(), nullptr};
  const int given = file_of(format_finding_json(finding));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (given >= 0)
    posix_spawn_file_actions_adddup2(&actions, given, STDIN_FILENO);
  else  // the user's terminal is not the command's to read
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, "/bin/sh", &actions, nullptr,
                                   const_cast<char* const*>(words), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (given >= 0) ::close(given);
  if (failed)
    say(std::string("warning: --violation-command cannot be run: ") + std::strerror(failed));
  else
    running_.push_back(child);
}

// At most kLongest seconds for all of them together.
void ViolationCommand::wait() {
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (std::erase_if(running_, is_over), !running_.empty()) {
    if (std::chrono::steady_clock::now() > end) {
      say("note: " + counted(running_.size(), "command") + " of --violation-command still running");
      running_.clear();
      return;
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace opguard
