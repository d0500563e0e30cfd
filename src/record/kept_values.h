// record/kept_values.h: the names of the state events that hold what a program keeps, beside those
// of its random generators.
#pragma once

#include <string_view>

namespace opguard {

// Buffers of the program's modules that changed since the last such event, by name
// ("layers.0.norm.running_mean"): at the end of each step and of the process.
inline constexpr std::string_view kBuffers = "<buffers>";

// The tensors of one call that wrote a file (torch.save, safetensors).
inline constexpr std::string_view kSaved = "<saved>";

// Of an event of kind state: model values, and no generator's state.
inline bool keeps_values(std::string_view boundary) {
  return boundary == kBuffers || boundary == kSaved;
}

}  // namespace opguard
