// report/perfetto_names.h: strings of a Perfetto trace: each is written once and has a number from
// then on.
//
//   packet 7    interned_data {event_names {iid 3, name "softmax"}}, track_event {name_iid 3}
//   packet 9    track_event {name_iid 3}
//
// id() gives a number at once, also while a packet's body is written. write() then puts what is new
// in front of that body.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "protozero/pbf_writer.hpp"
#include "report/perfetto_fields.h"

namespace opguard {

// A table of strings written once and named by number from then on.
class PerfettoNames {
 public:
  explicit PerfettoNames(uint32_t field) : field_(field) {}

  uint64_t id(const std::string& text) {
    auto [at, fresh] = ids_.try_emplace(text, ids_.size() + 1);
    if (fresh) pending_.push_back(at);
    return at->second;
  }
  // Names that have a number and are in no packet yet.
  bool pending() const { return !pending_.empty(); }
  void write(protozero::pbf_writer& interned) {
    for (const auto& entry : pending_) {
      protozero::pbf_writer name(interned, field_);
      name.add_uint64(field::iid, entry->second);
      name.add_bytes(field::text, entry->first);
    }
    pending_.clear();
  }

 private:
  const uint32_t field_;
  std::map<std::string, uint64_t> ids_;
  // Into ids_: its entries stay where they are while it grows.
  std::vector<std::map<std::string, uint64_t>::const_iterator> pending_;
};

}  // namespace opguard
