// tests/align/builder.h: runs written by hand, as the reader would return them.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "align/judge/reason.h"
#include "record/record.h"

namespace opguard::test {

// One slot: a value is a small number that stands for a fingerprint.
struct S {
  SlotKind kind = SlotKind::in;
  uint64_t value = 0;
  std::string name = {};
  std::vector<int64_t> shape = {4, 8};
  uint16_t flags = 0;
  std::string dtype = "float32";
  uint32_t storage = 0;  // number of its memory block; address and span follow from it and `at`
  uint32_t version = 0;
  uint64_t at = 0;                      // bytes from the block's beginning
  std::optional<uint64_t> digest = {};  // the layout-free one; by default it is not known
};

inline S in(uint64_t value, std::string name = "arg0") { return {SlotKind::in, value, name}; }
inline S out(uint64_t value, std::string name = "out0") { return {SlotKind::out, value, name}; }
inline S written(uint64_t value, std::string name = "self") {
  return {SlotKind::written, value, name};
}

// What differs from the defaults of an event.
struct E {
  std::string boundary;
  std::vector<S> slots = {};
  std::string scalars = {};
  uint32_t step = 0;
  Phase phase = Phase::forward;
  EventKind kind = EventKind::op;
  std::string node = {};
  uint32_t thread = 0;
  uint32_t micro_batch = 0;
  uint8_t flags = 0;
  std::string results = {};
  uint64_t inside = 0;  // events just before it that ran inside it
  std::string group = {};
  uint32_t sequence = 0;
};

class LogBuilder {
 public:
  explicit LogBuilder(int32_t rank = 0) {
    log_.rank = rank;
    log_.pid = 100 + rank;
    log_.closed = true;
    log_.path = "rank" + std::to_string(rank) + ".log";
  }

  LogBuilder& add(const E& e) {
    Event event;
    event.boundary = text(e.boundary);
    event.kind = e.kind;
    event.phase = e.phase;
    event.flags = e.flags;
    event.step = e.step;
    event.micro_batch = e.micro_batch;
    event.occurrence = occurrences_[{e.boundary, e.kind, e.phase, e.node}]++;
    event.thread = e.thread;
    event.begin = log_.events.size() - e.inside;
    event.node = e.node.empty() ? kNone : text(e.node);
    event.scalars = e.scalars.empty() ? kNone : text(e.scalars);
    event.results = e.results.empty() ? kNone : text(e.results);
    event.group = e.group.empty() ? kNone : text(e.group);
    event.sequence = e.sequence;
    event.first_slot = log_.slots.size();
    event.slot_count = e.slots.size();
    uint16_t index[3] = {};
    for (const S& s : e.slots) {
      Slot slot;
      slot.kind = s.kind;
      slot.flags = s.flags;
      slot.index = index[int(s.kind)]++;
      slot.name = text(s.name);
      slot.meta = meta({s.dtype, "cpu", s.shape});
      slot.value = {s.value * 0x0101010101010101ull, s.value};
      slot.flat = slot.value.h;
      slot.has_digest = s.digest.has_value();
      slot.digest = s.digest.value_or(0);
      slot.version = s.version;
      slot.storage = s.storage;
      if (s.storage != 0) {
        slot.address = uint64_t(s.storage) << 20 | s.at;
        slot.size_bytes = 4;
        for (int64_t n : s.shape) slot.size_bytes *= uint64_t(n);
      }
      log_.slots.edit().push_back(slot);
    }
    log_.events.edit().push_back(event);
    return *this;
  }

  LogBuilder& at(const std::string& boundary, Location location) {
    log_.locations[boundary] = std::move(location);
    return *this;
  }

  LogBuilder& setting(const std::string& key, const std::string& value) {
    log_.settings[key] = value;
    return *this;
  }

  ProcessLog& log() { return log_; }

 private:
  uint32_t text(const std::string& string) {
    auto [at, fresh] = texts_.try_emplace(string, uint32_t(log_.strings.size()));
    if (fresh) log_.strings.push_back(string);
    return at->second;
  }

  uint32_t meta(const Meta& meta) {
    auto at = std::find(log_.metas.begin(), log_.metas.end(), meta);
    if (at == log_.metas.end()) at = log_.metas.insert(at, meta);
    return uint32_t(at - log_.metas.begin());
  }

  ProcessLog log_;
  std::map<std::string, uint32_t> texts_;
  std::map<std::tuple<std::string, EventKind, Phase, std::string>, uint32_t> occurrences_;
};

inline bool says(const Reasons& why, const Reason& reason) {
  return std::find(why.begin(), why.end(), reason) != why.end();
}
inline bool says(const Reasons& why, ReasonKind kind) {
  return std::any_of(why.begin(), why.end(), [&](const Reason& r) { return r.kind == kind; });
}

inline Run run_of(std::vector<ProcessLog> processes, std::string dir = "run") {
  Run run;
  run.dir = std::move(dir);
  run.processes = std::move(processes);
  return run;
}

}  // namespace opguard::test
