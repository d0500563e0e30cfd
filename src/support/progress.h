// support/progress.h: what a command is doing, for someone who waits at a terminal.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace opguard {

// How far a program has come that runs meanwhile: a file in which it counts its steps, and how many
// there will be.
struct StepCount {
  std::string file;    // "": none
  uint64_t total = 0;  // 0: not known
};
// The number in such a file; 0 where there is none yet.
uint64_t steps_done(const std::string& file);

// "run of a, step 12 of 40, 1 min 20 s left". first: steps that were done when counting began;
// since_s: seconds from then on.
std::string progress_text(const std::string& what, uint64_t seconds, uint64_t first, uint64_t done,
                          uint64_t total, double since_s);

// While it lives: after a second, one line on stderr with the seconds so far, rewritten in place
// and taken away at the end. Nothing where stderr is no terminal.
class Progress {
 public:
  explicit Progress(std::string what, StepCount steps = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void show();

  const std::string what_;
  const StepCount steps_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace opguard
