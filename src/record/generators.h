// record/generators.h: how a log tells of the states of random number generators.
#pragma once

#include <string_view>

namespace opguard {

// Boundary of the events that hold the generators' states just before an operator that may draw.
inline constexpr std::string_view kGenerators = "<generators>";

// Of those that hold them at the beginning of a step.
inline constexpr std::string_view kStepState = "<state>";

// Of an event of kind state: it holds generators' states, and no values.
inline bool of_generators(std::string_view boundary) {
  return boundary == kGenerators || boundary == kStepState;
}

// Whether a call's scalars (runtime/recorder/values.cc) hold a generator that the program made
// itself: "generator=Generator(seed=7)". Its state is in no record, and what moves a generator of
// the process does not move it.
inline bool given_generator(std::string_view scalars) {
  return scalars.find("=Generator(") != std::string_view::npos;
}

}  // namespace opguard
