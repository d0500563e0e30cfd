// align/tolerance/handed_numbers.h: numbers that went through Python, of which no tensor tells.
//
//   scale = (largest / norm).clamp(max=1).item()     results "out=0.32822"
//   p.grad.mul_(scale)                               arguments "arg0=0.32822": made of that, too
//
// Where the program went on counting with it, no text is the same. Then all numbers are meant that
// Python was handed before in the step.
//
// Counterexample: a number that the reference's operators of that name are given as well, as a
// constant of the source.
//
// The cost: one pass over both runs' events, when it is made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "record/event_ref.h"
#include "record/record.h"

namespace opguard {

class HandedNumbers {
 public:
  HandedNumbers(const Run& reference, const Run& candidate);

  // Events of the candidate's process that handed out what this one was given. Empty where the
  // reference is given the same.
  std::vector<EventRef> behind(const EventRef& ref) const;

 private:
  struct Handed {
    uint32_t event = 0, step = 0;
    std::vector<std::string> numbers;
  };

  const Run& candidate_;
  std::unordered_map<std::string, std::unordered_set<std::string>> given_;  // by boundary
  std::map<int32_t, std::vector<Handed>> handed_;                           // in order
};

}  // namespace opguard
