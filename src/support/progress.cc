#include "support/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>

#include "support/say.h"

namespace opguard {
namespace {

// "45 s", "1 min 20 s", "2 h 5 min".
std::string duration(uint64_t seconds) {
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600)
    return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  return std::to_string(seconds / 3600) + " h " + std::to_string(seconds / 60 % 60) + " min";
}

}  // namespace

uint64_t steps_done(const std::string& file) {
  std::ifstream in(file);
  uint64_t steps = 0;
  in >> steps;
  return in ? steps : 0;
}

std::string progress_text(const std::string& what, uint64_t seconds, uint64_t first, uint64_t done,
                          uint64_t total, double since_s) {
  std::string text = what;
  if (done == 0) return text + ", " + duration(seconds);
  text += ", step " + std::to_string(done);
  // A run may make more steps than the one that was counted.
  if (total < done) return text + ", " + duration(seconds);
  text += " of " + std::to_string(total);
  if (done == total || done == first || since_s <= 0) return text + ", " + duration(seconds);
  const double each = since_s / double(done - first);
  return text + ", " + duration(uint64_t(each * double(total - done)) + 1) + " left";
}

Progress::Progress(std::string what, StepCount steps)
    : what_(std::move(what)), steps_(std::move(steps)) {
  if (!isatty(STDERR_FILENO) || talk() != Talk::normal) return;
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
  using std::chrono::steady_clock;
  bool shown = false;
  uint64_t first = 0, done = 0;
  steady_clock::time_point since = start_;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) {
    const auto now = steady_clock::now();
    if (!steps_.file.empty()) done = std::max(done, steps_done(steps_.file));
    // What came before the first step is no measure of a step.
    if (first == 0 && done > 0) first = done, since = now;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - start_).count();
    const std::string text = progress_text(what_, uint64_t(seconds), first, done, steps_.total,
                                           std::chrono::duration<double>(now - since).count());
    std::fprintf(stderr, "\r%s\x1b[K", text.c_str());
    std::fflush(stderr);
    shown = true;
  }
  if (!shown) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace opguard
