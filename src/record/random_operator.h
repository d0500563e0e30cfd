// record/random_operator.h: which operators draw random numbers, by name.
#pragma once

#include <string_view>

namespace opguard {

// Boundary of the events that hold the generators' states just before such an operator runs.
inline constexpr std::string_view kGenerators = "<generators>";

bool draws_random(std::string_view name);

// Sets a generator's state: `torch.manual_seed`, `random.setstate`. The names are those of which
// the tracer makes boundaries (python/opguard/trace/marks.py, "seed").
bool seeds_random(std::string_view name);

// Whether a call's scalars (runtime/recorder/values.cc) hold a generator that the program made
// itself: "generator=Generator(seed=7)". Its state is in no record, and what moves a generator of
// the process does not move it.
bool given_generator(std::string_view scalars);

}  // namespace opguard
