// support/nearest.h: "did you mean": the known word that a mistyped one is nearest to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opguard {

// "reciever" among {"receiver", "callee"} is "receiver"; so is its beginning, "rec". It is "" if
// none is near: more than a third of the letters, and more than one, would have to change.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// "; did you mean 'diff'?", or "" if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace opguard
