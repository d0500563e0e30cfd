#include "support/progress.h"

#include <unistd.h>

#include <cstdio>
#include <system_error>
#include <utility>

namespace opguard {

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (!isatty(STDERR_FILENO)) return;
  try {
    thread_ = std::thread([this] { show(); });
  } catch (const std::system_error&) {
    // No thread to be had: the work matters more.
  }
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Progress::show() {
  bool shown = false;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start_);
    std::fprintf(stderr, "\r%s, %lld s", what_.c_str(), static_cast<long long>(seconds.count()));
    std::fflush(stderr);
    shown = true;
  }
  if (!shown) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace opguard
