// report/background_json.h: what may stand behind a candidate: docs/formats/json.md.
//
//   suspect    {"nearness": "statement", "a": {"file": "train.py", "first": 13, "last": 13, ...},
//               "b": null, "whole_file": false, "agrees": false}
//
// A side is null where the program has no text there, so an inserted line has no `a`.
#pragma once

#include "nlohmann/json.hpp"
#include "report/report.h"

namespace opguard {

nlohmann::ordered_json suspects_json(const Report& report, const Background& background);
nlohmann::ordered_json numbers_json(const Report& report, const Background& background);

}  // namespace opguard
