#include "support/kept_input.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "support/say.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <thread>

namespace opguard {
namespace {

constexpr size_t kPage = 4096;

enum class Source { file, pipe, socket };

// What keep_input() found, and what the programs read so far.
struct Kept {
  Source source;
  off_t start = 0;    // of a file: where it stood
  int spool = -1;     // a file without a name: what was read of a pipe or a socket
  off_t size = 0;     // of the spool
  bool lost = false;  // the spool could not be written
};

std::optional<Kept>& kept() {
  static std::optional<Kept> kept;
  return kept;
}

// A file of ours that no folder lists; -1: none can be made.
int unnamed_file() {
  int fd = -1;
  llvm::SmallString<128> name;
  if (llvm::sys::fs::createTemporaryFile("opguard-input", "", fd, name)) return -1;
  unlink(name.c_str());
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

}  // namespace

void keep_input() {
  struct stat status;
  if (kept() || fstat(STDIN_FILENO, &status) != 0) return;
  if (S_ISREG(status.st_mode)) {
    if (const off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR); at >= 0) kept() = {Source::file, at};
    return;
  }
  if (!S_ISFIFO(status.st_mode) && !S_ISSOCK(status.st_mode)) return;
  const int spool = unnamed_file();
  if (spool < 0) return say("warning: stdin cannot be kept: only one run can read what it gives");
  kept() = {S_ISFIFO(status.st_mode) ? Source::pipe : Source::socket, 0, spool};
}

struct InputFeed::State {
  int child = -1;                  // the program's end; ours too, to see how much it left
  int out = -1;                    // our end
  std::array<int, 2> end{-1, -1};  // closed to end the thread
  std::thread thread;
  off_t given = 0;  // of the spool

  // Waits until the program has read all that `out` holds; false: the feed ends first. A pipe of
  // one page has room only when it is empty.
  bool drained() {
    pollfd wait[] = {{out, POLLOUT, 0}, {end[0], POLLIN, 0}};
    while (poll(wait, 2, -1) < 0 && errno == EINTR) {
    }
    return wait[1].revents == 0;
  }

  // What earlier programs read.
  bool give_kept() {
    char page[kPage];
    while (given < kept()->size) {
      if (!drained()) return false;
      const ssize_t n =
          pread(kept()->spool, page, std::min<off_t>(kPage, kept()->size - given), given);
      if (n <= 0 || write(out, page, size_t(n)) != n) return false;
      given += n;
    }
    return true;
  }

  // Puts what stdin has into `out`, and leaves it in stdin. 0: its end.
  ssize_t duplicate() {
    if (kept()->source == Source::pipe) return tee(STDIN_FILENO, out, kPage, SPLICE_F_NONBLOCK);
    char page[kPage];
    const ssize_t n = recv(STDIN_FILENO, page, kPage, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 ? write(out, page, size_t(n)) : n;
  }

  // Moves what was read from stdin to the spool.
  void take(size_t size) {
    char page[kPage];
    while (size > 0) {
      const ssize_t n = read(STDIN_FILENO, page, std::min(size, kPage));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      if (pwrite(kept()->spool, page, size_t(n), kept()->size) != n) kept()->lost = true;
      kept()->size += n;
      size -= size_t(n);
    }
  }

  void feed() {
    if (!give_kept()) return;
    while (drained()) {
      pollfd wait[] = {{STDIN_FILENO, POLLIN, 0}, {end[0], POLLIN, 0}};
      while (poll(wait, 2, -1) < 0 && errno == EINTR) {
      }
      if (wait[1].revents != 0) return;
      const ssize_t n = duplicate();
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0) break;
      const bool all = drained();
      int left = 0;
      if (!all) ioctl(child, FIONREAD, &left);
      take(size_t(n) - size_t(left));
      if (!all) return;
    }
    close(out);  // the end of the input
    out = -1;
  }
};

InputFeed::InputFeed() {
  if (!kept()) return;
  state_ = std::make_unique<State>();
  State& state = *state_;
  if (kept()->source == Source::file) {
    state.child = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
    if (state.child >= 0) lseek(state.child, kept()->start, SEEK_SET);
    return;
  }
  std::array<int, 2> data;
  if (pipe2(data.data(), O_CLOEXEC) != 0) return;
  if (fcntl(data[1], F_SETPIPE_SZ, int(kPage)) != int(kPage) ||
      pipe2(state.end.data(), O_CLOEXEC) != 0) {
    close(data[0]), close(data[1]);
    return;
  }
  state.child = data[0];
  state.out = data[1];
  state.thread = std::thread([&state] { state.feed(); });
}

InputFeed::~InputFeed() {
  if (!state_) return;
  if (state_->end[1] >= 0) close(state_->end[1]);
  if (state_->thread.joinable()) state_->thread.join();
  if (kept()->lost)
    say("warning: what the program read from stdin could not be kept: another run reads other "
        "input");
  for (const int fd : {state_->child, state_->out, state_->end[0]})
    if (fd >= 0) close(fd);
}

int InputFeed::descriptor() const { return state_ ? state_->child : -1; }

}  // namespace opguard
