// record/steps_against.h: a run that is being recorded, held against the index of an earlier one.
//
//   a   step 36: 9f31   step 37: 5d02   step 38: 77ab      its index, on disk
//   b   step 36: 9f31   step 37: 0c4e                      as its log's thread digests it: parted
//   37
//
// What is compared is all up to a step, as equal_start.h compares it, but for the states of random
// generators. What they do shows in values. Once the runs have parted they stay so: nothing more is
// read.
//
// Counterexample: run b goes on behind run a's last step. It has not parted by that.
// The cost: one entry of 64 bytes a step, read 64 at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "record/step_index.h"

namespace opguard {

class StepsAgainst {
 public:
  // The index of run a's log. False: `error` says why not.
  bool open(const std::string& path, std::string& error);
  // The steps of run b, each once and in order. By the log's thread.
  void add(const std::vector<DigestedStep>& steps);

  // By any thread: the first step that differs, kNone so far.
  uint32_t parted() const { return parted_.load(std::memory_order_acquire); }
  // How many steps were compared and agree.
  uint64_t agreed() const { return agreed_.load(std::memory_order_acquire); }

 private:
  StepIndex index_;
  uint64_t chain_ = 0;
  bool over_ = false;  // nothing more is to be compared
  std::atomic<uint64_t> agreed_{0};
  std::atomic<uint32_t> parted_{kNone};
};

}  // namespace opguard
