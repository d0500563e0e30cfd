// invariants/places/event_search.h: events and slots of one process's log, looked for by value.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "record/record.h"

namespace opguard {

// The events of a step: [first, last) by index; empty where the log has none.
struct EventRange {
  uint64_t first = 0, last = 0;
};
EventRange events_of_step(const ProcessLog& log, uint32_t step);

// The first slot of an event that a test admits; nullopt: none.
std::optional<Slot> find_slot(const ProcessLog& log, const Event& event,
                              const std::function<bool(const Slot&)>& admits);

// Whether a slot's name is that of a tensor of the model: "arg0.model.fc.weight" of "fc.weight".
bool names_tensor(std::string_view slot_name, std::string_view name);

bool is_value(const Slot& slot);             // readable, and not of zero bits only
bool overlap(const Slot& a, const Slot& b);  // the same memory, as far as it is known

// The last event before `before` that returned or wrote `value`: who made it. nullopt: nobody, or
// it was there from the beginning.
std::optional<uint64_t> maker_of(const ProcessLog& log, uint64_t before, const Fingerprint& value);

// Events of [range) that wrote the memory of `slot`, in order: what stood in it and how it came.
std::vector<uint64_t> writers_of(const ProcessLog& log, EventRange range, const Slot& slot);

}  // namespace opguard
