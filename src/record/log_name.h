// record/log_name.h: what the files of one log are called.
//
//   rank0-1790000000000000000-4711.log.incomplete   the log, until it is closed well
//   rank0-1790000000000000000-4711.log              then
//   rank0-1790000000000000000-4711                  its stem: .steps, .groups, .000003.segment
//
// Each of them has the ending `.incomplete` as long as it grows.
#pragma once

#include <string>
#include <string_view>

namespace opguard {

inline constexpr std::string_view kIncomplete = ".incomplete";

inline std::string_view without_ending(std::string_view path, std::string_view ending) {
  if (path.ends_with(ending)) path.remove_suffix(ending.size());
  return path;
}

inline std::string_view log_stem(std::string_view log_path) {
  return without_ending(without_ending(log_path, kIncomplete), ".log");
}

}  // namespace opguard
