#include "record/random_operator.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace opguard {

bool draws_random(std::string_view name) {
  static constexpr std::array kParts = {
      "rand",    "dropout",     "drop_path", "bernoulli",  "multinomial", "uniform",
      "normal_", "exponential", "poisson",   "geometric_", "cauchy_",     "sample",
      "shuffle", "choice",      "gumbel",    "rrelu",      "noise",       "torch.normal"};
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](const char* part) { return lower.find(part) != lower.npos; });
}

}  // namespace opguard
