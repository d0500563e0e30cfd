// report/sarif_parts.h: what the SARIF of `opguard check` and of `opguard prove` have in common.
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "record/location.h"
#include "report/identity.h"

namespace opguard {

// A relative Location::file is one of the tree, so that a review shows it; others are absolute.
nlohmann::ordered_json sarif_location(const Location& at, const std::string& message);

// A run without its `properties`. `tree`: what relative paths are below; "": not known.
nlohmann::ordered_json sarif_run(const Identity& identity, const std::string& tree,
                                 nlohmann::ordered_json rules, nlohmann::ordered_json results);

// The file of one run.
std::string sarif_text(nlohmann::ordered_json run);

}  // namespace opguard
