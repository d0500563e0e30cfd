// What a text becomes:
//
//   20GB       segments of 256 MiB, the most there is
//   1GB        segments of 125 MB, an eighth
//   6h         segments of 256 MiB, or what comes in 45 minutes
//   20GB,3GB   refused: a size is there already
#include "record/keep_text.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace opguard {
namespace {

constexpr uint64_t kMostSegmentBytes = 256 << 20, kLeastKept = 1'000'000;
constexpr uint64_t kMost = uint64_t{1} << 62;

struct Unit {
  std::string_view name;
  uint64_t factor;
};

constexpr Unit kSizes[] = {{"MB", 1'000'000}, {"GB", 1'000'000'000}, {"TB", 1'000'000'000'000},
                           {"MiB", 1 << 20},  {"GiB", 1 << 30},      {"TiB", uint64_t{1} << 40}};
constexpr Unit kTimes[] = {{"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};

// A number and one of `units`; false: it is not that.
template <size_t n>
bool take_measure(std::string_view word, const Unit (&units)[n], uint64_t& measure) {
  uint64_t number = 0;
  const auto [at, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const std::string_view unit(at, static_cast<size_t>(word.data() + word.size() - at));
  for (const Unit& known : units)
    if (error == std::errc() && unit == known.name && number > 0 && number < kMost / known.factor) {
      measure = number * known.factor;
      return true;
    }
  return false;
}

// bytes: that are there of segments; 0: no limit.
uint64_t segment_bytes_of(uint64_t bytes) {
  return bytes == 0 ? kMostSegmentBytes : std::min(kMostSegmentBytes, bytes / kSegmentsKept);
}

}  // namespace

bool parse_keep(std::string_view text, SegmentLimits& limits, std::string& error) {
  SegmentLimits read;
  const std::string given(text);
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    more = comma != std::string_view::npos;
    text.remove_prefix(more ? comma + 1 : text.size());
    const bool known = (read.keep_bytes == 0 && take_measure(word, kSizes, read.keep_bytes)) ||
                       (read.keep_ms == 0 && take_measure(word, kTimes, read.keep_ms));
    if (known) continue;
    error = "not a size or a time, as 20GB or 6h or 20GB,6h is: " + given;
    return false;
  }
  if (read.keep_bytes > 0 && read.keep_bytes < kLeastKept) {
    error = "less than 1MB: " + given;
    return false;
  }
  read.segment_bytes = segment_bytes_of(read.keep_bytes);
  limits = read;
  return true;
}

bool parse_spool(std::string_view text, SegmentLimits& limits, std::string& error) {
  SegmentLimits read;
  const bool known = take_measure(text, kSizes, read.spool_bytes);
  if (!known || read.spool_bytes < kLeastKept) {
    error = (known ? "less than 1MB: " : "not a size, as 4GB is: ") + std::string(text);
    return false;
  }
  read.segment_bytes = segment_bytes_of(read.spool_bytes);
  limits = read;
  return true;
}

}  // namespace opguard
