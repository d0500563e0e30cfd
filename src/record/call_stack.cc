// Each line is read from its right end, since a path may hold colons: the function, the line, and
// what is left is the path. A line that is not of this form is left out.
//
//   /mnt/a:b/model.py:12:Block.forward    path /mnt/a:b/model.py, line 12
#include "record/call_stack.h"

#include <algorithm>
#include <charconv>

namespace opguard {

std::vector<Caller> callers_of(std::string_view text) {
  std::vector<Caller> callers;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view entry = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t function = entry.rfind(':');
    if (function == std::string_view::npos || function == 0) continue;
    const size_t line = entry.rfind(':', function - 1);
    if (line == std::string_view::npos || line == 0) continue;
    Caller caller{.path = std::string(entry.substr(0, line)),
                  .function = std::string(entry.substr(function + 1))};
    const char* const stop = entry.data() + function;
    if (std::from_chars(entry.data() + line + 1, stop, caller.line).ptr == stop)
      callers.push_back(std::move(caller));
  }
  return callers;
}

}  // namespace opguard
