// invariants/builtin.h: the rules that come with the tool.
//
// hypotheses.json is written by hand. `bench/invariants.py --builtin` looks at them in clean
// programs, adds what those programs keep, and writes builtin.json.
#pragma once

#include <string_view>

namespace opguard {

std::string_view builtin_rules();     // JSON, as a file of `opguard infer`
std::string_view hypotheses_rules();  // the same, without evidence

}  // namespace opguard
