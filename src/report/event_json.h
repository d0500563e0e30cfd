// report/event_json.h: an event, its place and its slots as docs/formats/json.md has them.
//
//   place    {"file": "model/rope.py", "line": 15, "column": 22, ...,
//             "place": "/abs/model/rope.py:15:23"}
//   slot     {"name": "out0", "dtype": "float32", "shape": [4, 8], "device": "cpu",
//             "fingerprint": "0123456789abcdef:0123456789abcdef"}
//
// Columns count from 0 in characters; "place" is for people and counts from 1.
#pragma once

#include <optional>

#include "align/judge/pivot_view.h"
#include "nlohmann/json.hpp"

namespace opguard {

nlohmann::ordered_json place_json(const Provenance& provenance, const Location& at);
// Of one side: null where it has no event.
nlohmann::ordered_json side_json(const EventView& side);
// null for a side without it. No "fingerprint": it could not be read.
nlohmann::ordered_json slot_json(const ProcessLog& log, const std::optional<Slot>& slot);

}  // namespace opguard
