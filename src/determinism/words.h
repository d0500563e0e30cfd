// determinism/words.h: findings as the doctor's table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "determinism/finding.h"
#include "nlohmann/json.hpp"

namespace opguard {

std::string surface_title(Surface surface);
const char* hold_name(Hold hold);

// "python's generator", "cudnn.benchmark".
std::string thing_of(const Finding& finding);
// "drawn from by random() without a seed": no full stop.
std::string words_of(const Finding& finding);
// ", by the program"; "" where nobody has set it.
std::string setter_words(const Finding& finding);

// The whole table, surface by surface. folder: places below it are shown by their names in it.
std::string determinism_table(const std::vector<Finding>& findings, const std::string& folder);

nlohmann::ordered_json findings_array(const std::vector<Finding>& findings);

}  // namespace opguard
