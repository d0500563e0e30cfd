// Starts the child, passes signals and output on, and waits until both are at their end.
//
//   Ctrl-C at the terminal     a child in our group has it already; to another we pass it on
//   a timeout                  SIGTERM, after ten seconds SIGKILL
//   the child has ended        what is in the pipe still comes; who else holds it open is waited
//                              for half a second
//   its work is done           15 seconds for last words, then it is asked to end: no failure
//
// Counterexample: SIG_IGN. What nohup has ignored stays ignored, for us and for the child.
//
// Between fork and exec only calls are made that are safe there. That the command cannot be run
// comes back through a pipe that exec closes: no bytes, no error.
//
// The handler sees three variables and nothing else, so there is one child at a time.
#include "support/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "keep/kept.h"
#include "support/diagnostics.h"
#include "support/end_processes.h"
#include "support/guardian.h"
#include "support/kept_input.h"
#include "support/write_file.h"

extern char** environ;

namespace opguard {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPollMs = 50;
// A child that ignores SIGTERM is killed after this long.
constexpr auto kGrace = std::chrono::seconds(10);
// What is still in the pipe when the child has ended is waited for this long. A process it left
// behind may hold the pipe open for ever.
constexpr auto kDrain = std::chrono::milliseconds(500);
// How long a command may go on when its work is done: a launcher looks after its ranks every few
// seconds.
constexpr auto kLastWords = std::chrono::seconds(15);

// What a command of ours leaves in its group when it has ended.
constexpr int kLeftBehindMs = 1000;

// For the signal handler, which sees nothing else. One child at a time.
volatile pid_t child_pid = 0;
volatile sig_atomic_t child_has_group = 0;
volatile sig_atomic_t got_signal = 0;

void pass_on(int signal, siginfo_t* info, void*) {
  int saved = errno;
  got_signal = signal;
  pid_t pid = child_pid;
  if (pid > 0) {
    if (child_has_group)
      kill(-pid, signal);
    else if (info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL)
      kill(pid, signal);  // from the terminal it has reached the child already
  }
  errno = saved;
}

constexpr int kPassed[] = {SIGINT, SIGTERM, SIGHUP};

class SignalGuard {
 public:
  SignalGuard() {
    got_signal = 0;
    struct sigaction action = {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 3; ++i) {
      sigaction(kPassed[i], nullptr, &old_[i]);
      // Ignored by nohup and the like: stays so.
      if (old_[i].sa_handler != SIG_IGN) sigaction(kPassed[i], &action, nullptr);
    }
  }
  ~SignalGuard() {
    child_pid = 0;
    for (int i = 0; i < 3; ++i) sigaction(kPassed[i], &old_[i], nullptr);
  }

 private:
  struct sigaction old_[3];
};

// Ours: what a launch script that empties the environment must not take away.
std::string kept_names(const std::map<std::string, std::string>& all, const Variables& added) {
  std::string names = keep::kNames;
  for (const auto& [name, value] : all) {
    const bool ours = name.rfind("OPGUARD_", 0) == 0 ||
                      std::any_of(added.begin(), added.end(),
                                  [&](const auto& variable) { return variable.first == name; });
    if (ours && name != keep::kNames && name != "LD_PRELOAD") names += "," + name;
  }
  return names;
}

std::vector<std::string> merged_environment(const Variables& added) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      all[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : added) {
    if (value.empty())
      all.erase(name);
    else
      all[name] = value;
  }
  if (all.count(keep::kLibraries)) all[keep::kNames] = kept_names(all, added);
  std::vector<std::string> out;
  for (const auto& [name, value] : all) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// Beyond fork only calls that are safe there: no allocation.
[[noreturn]] void become(char** argv, char** env, const char* cwd, bool own_group, bool no_input,
                         int in_fd, int out_fd, int report_fd) {
  if (own_group) setpgid(0, 0);
  guard_child(getpid(), own_group);
  if (in_fd >= 0) dup2(in_fd, STDIN_FILENO);
  // A group in the background that reads from the terminal is stopped.
  if (int none = no_input && in_fd < 0 ? open("/dev/null", O_RDONLY) : -1; none >= 0)
    dup2(none, STDIN_FILENO);
  for (int signal : kPassed) {
    struct sigaction now;
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) ::signal(signal, SIG_DFL);
  }
  restore_file_size_signal();
  int what = 0;
  if (*cwd && chdir(cwd) != 0) {
    what = 1;
  } else {
    if (out_fd >= 0) {
      dup2(out_fd, STDOUT_FILENO);
      dup2(out_fd, STDERR_FILENO);
    }
    environ = env;
    execvp(argv[0], argv);
  }
  int report[2] = {what, errno};
  (void)!write(report_fd, report, sizeof report);
  _exit(127);
}

bool pass_on(int fd, const char* data, size_t size) {
  while (size > 0) {
    ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= n;
  }
  return true;
}

// Where the child's output goes.
class Sink {
 public:
  Sink(bool show, int log_fd, size_t keep) : show_(show), log_fd_(log_fd), keep_(keep) {}

  void take(const char* data, size_t size) {
    // A closed stderr must not end the child: its output is read on and dropped.
    if (show_) show_ = pass_on(STDERR_FILENO, data, size);
    if (log_fd_ >= 0 && !pass_on(log_fd_, data, size)) log_fd_ = -1;
    kept_.append(data, size);
    if (kept_.size() > 2 * keep_) cut();
  }

  std::string finish() {
    cut();
    return std::move(kept_);
  }

 private:
  void cut() {
    if (kept_.size() <= keep_) return;
    size_t start = kept_.find('\n', kept_.size() - keep_);
    kept_.erase(0, start == std::string::npos ? kept_.size() - keep_ : start + 1);
  }

  bool show_;
  int log_fd_;
  size_t keep_;
  std::string kept_;
};

void send(pid_t pid, bool own_group, int signal) { kill(own_group ? -pid : pid, signal); }

// Reads what is there; false at the end of the output.
bool read_some(int fd, Sink& sink) {
  char buffer[65536];
  ssize_t n = read(fd, buffer, sizeof buffer);
  if (n > 0) sink.take(buffer, n);
  return n > 0 || (n < 0 && errno == EINTR);
}

LaunchResult wait_for(pid_t pid, bool own_group, int fd, Sink& sink, const LaunchOptions& options) {
  const uint64_t timeout_s = options.timeout_s;
  LaunchResult result;
  Clock::time_point begin = Clock::now(), ended, asked, finished;
  bool running = true, done_early = false;
  int status = 0;
  while (running || fd >= 0) {
    if (fd >= 0) {
      pollfd ready = {fd, POLLIN, 0};
      if (poll(&ready, 1, kPollMs) > 0) {
        if (!read_some(fd, sink)) fd = -1;
      } else if (!running && Clock::now() - ended > kDrain) {
        fd = -1;
      }
    }
    if (!running) continue;
    // With a pipe to watch this only looks; without, or past its end, it waits, a signal ends the
    // wait.
    bool look = fd >= 0 || timeout_s > 0 || !options.done.empty();
    rusage used{};
    pid_t done = wait4(pid, &status, look ? WNOHANG : 0, &used);
    if (done == pid) {
      result.peak_bytes = uint64_t(used.ru_maxrss) * 1024;  // Linux counts KiB
      running = false;
      ended = Clock::now();
      continue;
    }
    if (look && fd < 0) poll(nullptr, 0, kPollMs);
    if (!options.done.empty() && access(options.done.c_str(), F_OK) == 0) {
      if (finished == Clock::time_point()) finished = Clock::now();
      const auto since = Clock::now() - finished;
      done_early = since > kLastWords;
      if (done_early) send(pid, own_group, since > kLastWords + kGrace ? SIGKILL : SIGTERM);
      if (done_early) poll(nullptr, 0, kPollMs);
      continue;
    }
    if (timeout_s == 0) continue;
    if (!result.timed_out && Clock::now() - begin > std::chrono::seconds(timeout_s)) {
      result.timed_out = true;
      asked = Clock::now();
      send(pid, own_group, SIGTERM);
    } else if (result.timed_out && Clock::now() - asked > kGrace) {
      send(pid, own_group, SIGKILL);
    }
  }
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : static_cast<int>(got_signal);
  result.asked = got_signal;
  if (done_early && !got_signal) result.exit_code = result.signal = 0;
  if (options.apart && own_group) end_processes({{pid, true}}, kLeftBehindMs);
  result.output = sink.finish();
  return result;
}

}  // namespace

std::string LaunchResult::failure() const {
  if (timed_out) return "did not end in time";
  if (signal != 0) return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  if (exit_code != 0) return "exit code " + std::to_string(exit_code);
  return "";
}

llvm::Error LaunchResult::stopped() const {
  if (asked == 0) return llvm::Error::success();
  return make_error("stopped by signal " + std::to_string(asked) + " (" + strsignal(asked) + ")");
}

llvm::Expected<LaunchResult> launch(const LaunchOptions& options) {
  if (options.command.empty()) return make_error("no command given");
  std::vector<std::string> command = options.command;
  std::vector<std::string> environment = merged_environment(options.environment);
  std::vector<char*> argv = pointers(command), env = pointers(environment);

  bool piped = options.output != Output::inherit;
  int log_fd = -1;
  if (piped && !options.log.empty()) {
    log_fd = open(options.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (log_fd < 0) return make_error("cannot write " + options.log + ": " + std::strerror(errno));
  }
  int out[2] = {-1, -1}, report[2];
  if ((piped && pipe2(out, O_CLOEXEC) != 0) || pipe2(report, O_CLOEXEC) != 0)
    return make_error(std::string("no pipe for the program: ") + std::strerror(errno));

  // With a terminal at hand the child must stay in its foreground group to read from it.
  bool own_group = options.apart || !isatty(STDIN_FILENO);
  InputFeed input;
  SignalGuard guard;
  std::fflush(nullptr);
  pid_t pid = fork();
  if (pid == 0)
    become(argv.data(), env.data(), options.cwd.c_str(), own_group, options.apart,
           input.descriptor(), out[1], report[1]);
  if (pid > 0) {
    if (own_group) setpgid(pid, pid);
    child_has_group = own_group;
    child_pid = pid;
    if (got_signal) send(pid, own_group, got_signal);  // came before the child was there
  }
  int fork_errno = errno;
  close(report[1]);
  if (out[1] >= 0) close(out[1]);
  int failed[2] = {0, 0};
  ssize_t n;
  do {
    n = read(report[0], failed, sizeof failed);
  } while (n < 0 && errno == EINTR);
  close(report[0]);

  auto close_all = [&] {
    if (out[0] >= 0) close(out[0]);
    if (log_fd >= 0) close(log_fd);
  };
  if (pid < 0) {
    close_all();
    return make_error(std::string("cannot start a process: ") + std::strerror(fork_errno));
  }
  if (n == sizeof failed) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    release_child(pid);
    close_all();
    const std::string& what = failed[0] == 1 ? options.cwd : options.command[0];
    bool searched = failed[0] != 1 && failed[1] == ENOENT && what.find('/') == std::string::npos;
    return make_error("cannot " + std::string(failed[0] == 1 ? "enter " : "run ") + what + ": " +
                      (searched ? "not found on PATH" : std::strerror(failed[1])));
  }
  Sink sink(options.output == Output::to_stderr, log_fd, options.keep_bytes);
  LaunchResult result = wait_for(pid, own_group, out[0], sink, options);
  release_child(pid);
  close_all();
  return result;
}

std::string quote(const std::vector<std::string>& command) {
  std::string out;
  for (const std::string& word : command) {
    if (!out.empty()) out += ' ';
    bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return std::isalnum(c) || std::strchr("_-./=:,+@%", c);
    });
    if (plain) {
      out += word;
      continue;
    }
    out += '\'';
    for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

std::string command_text(const std::vector<std::string>& command) {
  const bool of_shell = command.size() == 3 && command[0] == "/bin/sh" && command[1] == "-c";
  return of_shell ? command[2] : command.empty() ? "" : quote(command);
}

std::string last_lines(const std::string& text, size_t lines) {
  std::vector<std::string_view> all;
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    all.push_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  std::string out;
  for (size_t i = all.size() > lines ? all.size() - lines : 0; i < all.size(); ++i)
    out += "  " + std::string(all[i]) + "\n";
  return out;
}

}  // namespace opguard
