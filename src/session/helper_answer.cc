// Whatever the helper prints is input: what is no answer is told as it stands, with its control
// characters spelled out.
#include "session/helper_answer.h"

#include <cstdio>
#include <iterator>

#include "nlohmann/json.hpp"
#include "support/diagnostics.h"
#include "support/text.h"

namespace opguard {

llvm::Expected<HelperAnswer> read_answer(llvm::Expected<std::string> line) {
  if (!line) return line.takeError();
  const nlohmann::json said = nlohmann::json::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (said.is_object() && said.contains("error") && said["error"].is_string())
    return make_error(said["error"].get<std::string>());
  if (!said.is_object() || !said.contains("bytes") || !said["bytes"].is_number_unsigned())
    return make_error("the helper said what is no answer: " + shown(*line));
  HelperAnswer answer;
  answer.bytes = said["bytes"].get<uint64_t>();
  if (said.contains("files") && said["files"].is_number_unsigned())
    answer.files = said["files"].get<uint64_t>();
  return answer;
}

// In powers of 1,000. Below 10 of a unit with one digit behind the point: "9.6 MB", "70 kB".
std::string byte_amount(uint64_t bytes) {
  const char* units[] = {"bytes", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  for (; value >= 1000 && unit + 1 < std::size(units); ++unit) value /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || value >= 10 ? "%.0f %s" : "%.1f %s", value,
                units[unit]);
  return text;
}

}  // namespace opguard
