// report/event_json.h: an event, its place and its slots as docs/formats/json.md has them.
#pragma once

#include <optional>

#include "align/judge/pivot_view.h"
#include "nlohmann/json.hpp"

namespace opguard {

nlohmann::ordered_json place_json(const Provenance& provenance, const Location& at);
// Of one side: null where it has no event.
nlohmann::ordered_json side_json(const EventView& side);
nlohmann::ordered_json slot_json(const ProcessLog& log, const std::optional<Slot>& slot);

}  // namespace opguard
