// record/step_window.h: which training steps of a run are recorded.
//
//   100..103      steps 100, 101, 102 and 103, counted from 0
//   100..         from step 100 on
//   0../10        steps 0, 10, 20, ...
//
// It is what `opguard run --steps`, `--from-step` and `--every` say, and what a log's setting
// `steps` says of itself. A log without that setting has all steps.
// Counterexample: `..103` and `103..100` are refused; a window has a beginning, and is not empty.
//
// The runtime reads windows too: no LLVM here. The cost: a comparison a step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "record/event.h"

namespace opguard {

struct StepWindow {
  uint32_t from = 0, to = kNone, every = 1;  // `to` is the last one; kNone: no end

  bool all() const { return *this == StepWindow{}; }
  bool holds(uint32_t step) const {
    return step >= from && step <= to && (step - from) % every == 0;
  }
  bool is_over(uint32_t step) const { return step > to; }
  bool operator==(const StepWindow&) const = default;
};

std::string window_text(const StepWindow& window);
// False: `error` says what is wrong, in one sentence.
bool parse_window(std::string_view text, StepWindow& window, std::string& error);

}  // namespace opguard
