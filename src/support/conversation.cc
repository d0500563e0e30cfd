#include "support/conversation.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "support/diagnostics.h"

extern char** environ;

namespace opguard {

llvm::Expected<std::unique_ptr<Conversation>> Conversation::begin(
    const std::vector<std::string>& command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return make_error(std::string("no socket for ") + command[0] + ": " + std::strerror(errno));
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO})
    posix_spawn_file_actions_adddup2(&files, ends[1], fd);
  pid_t pid = -1;
  const int failed = posix_spawnp(&pid, words[0], &files, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    return make_error("cannot run " + command[0] + ": " + std::strerror(failed));
  }
  return std::unique_ptr<Conversation>(new Conversation(command[0], pid, ends[0]));
}

Conversation::~Conversation() {
  close(socket_);
  if (pid_ >= 0)
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

llvm::Error Conversation::ended() {
  int status = 0;
  if (pid_ >= 0)
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  pid_ = -1;
  return make_error(name_ + " ended with " +
                    (WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                         : "exit code " + std::to_string(WEXITSTATUS(status))));
}

llvm::Expected<std::string> Conversation::listen() {
  for (;;) {
    if (const size_t end = heard_.find('\n'); end != std::string::npos) {
      std::string line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return line;
    }
    char some[4096];
    const ssize_t n = recv(socket_, some, sizeof some, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ended();
    heard_.append(some, static_cast<size_t>(n));
  }
}

llvm::Expected<std::string> Conversation::ask(std::string line) {
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = send(socket_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ended();
    done += static_cast<size_t>(n);
  }
  return listen();
}

}  // namespace opguard
