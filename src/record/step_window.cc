// Read from its end: what is behind the slash, then what is behind the dots, then the beginning.
//
//   0../10      from 0, no end, each tenth
//   100         step 100 alone
//   100..103    four steps
//   5../0       refused: no number of steps above 0
#include "record/step_window.h"

#include <charconv>
#include <system_error>

namespace opguard {
namespace {

bool read_whole(std::string_view text, uint32_t& number) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end && number != kNone;
}

}  // namespace

std::string window_text(const StepWindow& window) {
  std::string text = std::to_string(window.from) + "..";
  if (window.to != kNone) text += std::to_string(window.to);
  if (window.every != 1) text += "/" + std::to_string(window.every);
  return text;
}

bool parse_window(std::string_view text, StepWindow& window, std::string& error) {
  const std::string given(text);
  StepWindow read;
  if (const size_t slash = text.find('/'); slash != std::string_view::npos) {
    if (!read_whole(text.substr(slash + 1), read.every) || read.every == 0) {
      error = "behind '/' stands no number of steps above 0: " + given;
      return false;
    }
    text = text.substr(0, slash);
  }
  const size_t dots = text.find("..");
  const std::string_view last = dots == std::string_view::npos ? text : text.substr(dots + 2);
  if (!read_whole(text.substr(0, dots), read.from) ||
      (!last.empty() && !read_whole(last, read.to))) {
    error = "not a window of steps, as 100..103 or 100.. is: " + given;
    return false;
  }
  if (read.to < read.from) {
    error = "the last step is before the first: " + given;
    return false;
  }
  window = read;
  return true;
}

}  // namespace opguard
