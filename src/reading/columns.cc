// The two lists of columns, and the dictionaries of texts.
//
//   {"step", u32, [](row) { return row.at.step; }}          a number of every event
//   {"node", text, [](row) { return known(...); }, ...}     a log's string, or missing
//
// A column is a name, a type and a function of a row. A new one is one entry, and shows in numpy,
// pandas, Parquet and `opguard dump --format` at once.
//
// Texts of several logs share one dictionary. A log numbers its own strings, so a code is looked up
// by process and number. Counterexample: the same name has number 3 in one log and 7 in the other.
//
// The cost: a dictionary takes one pass over the rows, when it is first asked for, and is kept.
#include "reading/columns.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "record/limits.h"
#include "record/log_words.h"

namespace opguard {
namespace {

using Value = std::optional<uint64_t>;

// ---- Sources of texts.

constexpr TextSource kStrings = {[](const ProcessLog& log) { return log.strings.size(); },
                                 [](const ProcessLog& log, size_t i) { return log.strings[i]; }};
constexpr TextSource kDtypes = {[](const ProcessLog& log) { return log.metas.size(); },
                                [](const ProcessLog& log, size_t i) { return log.metas[i].dtype; }};
constexpr TextSource kDevices = {
    [](const ProcessLog& log) { return log.metas.size(); },
    [](const ProcessLog& log, size_t i) { return log.metas[i].device; }};
// By the boundary's string. Only keys that place_column() gave are asked for, so each has a
// location.
constexpr TextSource kPlaces = {
    [](const ProcessLog& log) { return log.strings.size(); },
    [](const ProcessLog& log, size_t i) { return place_of(log.locations.at(log.strings[i])); }};

constexpr TextSource kPhases = {
    [](const ProcessLog&) { return kPhaseNames.size(); },
    [](const ProcessLog&, size_t i) { return std::string(kPhaseNames[i]); }};
constexpr TextSource kKindNames = {
    [](const ProcessLog&) { return kEventKindNames.size(); },
    [](const ProcessLog&, size_t i) { return std::string(kEventKindNames[i]); }};
constexpr TextSource kSlotKinds = {
    [](const ProcessLog&) { return kSlotKindNames.size(); },
    [](const ProcessLog&, size_t i) { return std::string(kSlotKindNames[i]); }};

// ---- Values.

Value known(uint32_t index) { return index == kNone ? Value() : Value(index); }
// Numbers from 1, 0 for none.
Value counted(uint32_t number) { return number == 0 ? Value() : Value(number); }

template <uint8_t kFlag>
Value event_flag(const Row& r) {
  return (r.at.flags & kFlag) != 0;
}
template <SlotFlags kFlag>
Value slot_flag(const Row& r) {
  return (r.slot->flags & kFlag) != 0;
}

bool readable(const Row& r) { return !(r.slot->flags & kUnreadable); }

Value place_column(const Row& r) {
  return r.log.locations.contains(r.log.text(r.at.boundary)) ? known(r.at.boundary) : Value();
}

using enum ColumnType;

// Of the event; the table of records has them too.
constexpr Column kProcess = {"process", u32, [](const Row& r) -> Value { return r.process; }};
// Through int64: rank -1 stays -1.
constexpr Column kRank = {
    "rank", i32, [](const Row& r) -> Value { return static_cast<uint64_t>(int64_t{r.log.rank}); }};
constexpr Column kEvent = {"event", u64, [](const Row& r) -> Value { return r.event; }};
constexpr Column kStep = {"step", u32, [](const Row& r) -> Value { return r.at.step; }};
constexpr Column kMicroBatch = {"micro_batch", u32,
                                [](const Row& r) -> Value { return r.at.micro_batch; }};
constexpr Column kPhase = {"phase", text,
                           [](const Row& r) -> Value { return static_cast<uint64_t>(r.at.phase); },
                           &kPhases};
constexpr Column kKind = {"kind", text,
                          [](const Row& r) -> Value { return static_cast<uint64_t>(r.at.kind); },
                          &kKindNames};
constexpr Column kBoundary = {"boundary", text, [](const Row& r) -> Value { return r.at.boundary; },
                              &kStrings};
constexpr Column kOccurrence = {"occurrence", u32,
                                [](const Row& r) -> Value { return r.at.occurrence; }};
constexpr Column kNodeColumn = {"node", text, [](const Row& r) { return known(r.at.node); },
                                &kStrings};
constexpr Column kLocation = {"location", text, place_column, &kPlaces};
constexpr Column kThreadColumn = {"thread", u32, [](const Row& r) -> Value { return r.at.thread; }};
constexpr Column kStart = {"start_ns", u64, [](const Row& r) -> Value { return r.at.start_ns; }};
constexpr Column kEnd = {"end_ns", u64, [](const Row& r) -> Value { return r.at.end_ns; }};
constexpr Column kScalarsColumn = {"scalars", text,
                                   [](const Row& r) { return known(r.at.scalars); }, &kStrings};
constexpr Column kResultsColumn = {"results", text,
                                   [](const Row& r) { return known(r.at.results); }, &kStrings};
constexpr Column kGroup = {"group", text, [](const Row& r) { return known(r.at.group); },
                           &kStrings};
constexpr Column kSequence = {"sequence", u32, [](const Row& r) { return counted(r.at.sequence); }};
constexpr Column kRaisedFlag = {"raised", boolean, event_flag<kRaised>};
constexpr Column kCollectiveFlag = {"collective", boolean, event_flag<kCollective>};
// Of the device: its tensors were read there.
Value on_device(const Row& r, uint64_t value) {
  return r.at.flags & kOnDevice ? Value(value) : Value();
}
constexpr Column kStream = {"stream", u32, [](const Row& r) { return on_device(r, r.at.stream); }};
constexpr Column kDeviceStart = {"device_start_ns", u64,
                                 [](const Row& r) { return on_device(r, r.at.device_start_ns); }};
constexpr Column kDeviceEnd = {"device_end_ns", u64,
                               [](const Row& r) { return on_device(r, r.at.device_end_ns); }};
constexpr Column kInGraphFlag = {"in_graph", boolean, event_flag<kInGraph>};

// The order is what tables show, and a contract: docs/formats/reading.md lists it.
constexpr Column kEventColumns[] = {
    kProcess,
    kRank,
    kEvent,
    kStep,
    kMicroBatch,
    kPhase,
    kKind,
    kBoundary,
    kOccurrence,
    kNodeColumn,
    kLocation,
    {"first_record", u64, [](const Row& r) -> Value { return r.at.first_slot; }},
    {"records", u32, [](const Row& r) -> Value { return r.at.slot_count; }},
    {"begin", u64, [](const Row& r) -> Value { return r.at.begin; }},
    {"forward", u32, [](const Row& r) { return known(r.at.forward); }},
    kThreadColumn,
    kStart,
    kEnd,
    kScalarsColumn,
    kResultsColumn,
    kGroup,
    kSequence,
    kStream,
    kDeviceStart,
    kDeviceEnd,
    kRaisedFlag,
    kCollectiveFlag,
    kInGraphFlag,
};

constexpr Column kRecordColumns[] = {
    kProcess,
    kRank,
    kEvent,
    kStep,
    kMicroBatch,
    kPhase,
    kKind,
    kBoundary,
    kOccurrence,
    kNodeColumn,
    kLocation,
    {"slot_kind", text, [](const Row& r) -> Value { return static_cast<uint64_t>(r.slot->kind); },
     &kSlotKinds},
    {"slot_index", u32, [](const Row& r) -> Value { return r.slot->index; }},
    {"slot_name", text, [](const Row& r) { return known(r.slot->name); }, &kStrings},
    {"dtype", text, [](const Row& r) { return known(r.slot->meta); }, &kDtypes},
    {"device", text, [](const Row& r) { return known(r.slot->meta); }, &kDevices},
    {"shape", shape,
     [](const Row& r) {
       const uint32_t meta = r.slot->meta;
       // A damaged log could refer to one huge shape in every record: record/limits.h.
       const bool all = meta == kNone || r.log.metas[meta].shape.size() <= kTableDimensions;
       return all ? known(meta) : Value();
     }},
    {"h", hash, [](const Row& r) { return readable(r) ? Value(r.slot->value.h) : Value(); }},
    {"m", hash, [](const Row& r) { return readable(r) ? Value(r.slot->value.m) : Value(); }},
    {"flat", hash, [](const Row& r) { return readable(r) ? Value(r.slot->flat) : Value(); }},
    {"digest", hash,
     [](const Row& r) { return r.slot->has_digest ? Value(r.slot->digest) : Value(); }},
    {"pattern", hash,
     [](const Row& r) {
       return readable(r) && (r.slot->flags & kMask) ? Value(r.slot->pattern) : Value();
     }},
    {"version", u32, [](const Row& r) -> Value { return r.slot->version; }},
    {"storage", u32, [](const Row& r) { return counted(r.slot->storage); }},
    {"address", u64, [](const Row& r) -> Value { return r.slot->address; }},
    {"size_bytes", u64, [](const Row& r) -> Value { return r.slot->size_bytes; }},
    {"unreadable", boolean, slot_flag<kUnreadable>},
    {"model_value", boolean, slot_flag<kModelValue>},
    {"uninitialised", boolean, slot_flag<kUninitialised>},
    {"parameter", boolean, slot_flag<kParameter>},
    {"mask", boolean, slot_flag<kMask>},
    {"carried", boolean, slot_flag<kCarried>},
    {"permuted", boolean, slot_flag<kPermuted>},
    {"wants_gradient", boolean, slot_flag<kWantsGradient>},
    kThreadColumn,
    kStart,
    kEnd,
    kScalarsColumn,
    kResultsColumn,
    kGroup,
    kSequence,
    kStream,
    kDeviceStart,
    kDeviceEnd,
    kRaisedFlag,
    kCollectiveFlag,
    kInGraphFlag,
};

// Bytes of the UTF-8 character at the front of `s`; 0 if there is none.
size_t character(std::string_view s) {
  const auto b = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  if (b(0) < 0x80) return 1;
  const size_t n = b(0) >= 0xf0 ? 4 : b(0) >= 0xe0 ? 3 : 2;
  if (b(0) < 0xc2 || b(0) > 0xf4 || n > s.size()) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((b(i) & 0xc0) != 0x80) return 0;
  // Overlong, a surrogate, beyond U+10FFFF.
  if ((b(0) == 0xe0 && b(1) < 0xa0) || (b(0) == 0xed && b(1) > 0x9f)) return 0;
  if ((b(0) == 0xf0 && b(1) < 0x90) || (b(0) == 0xf4 && b(1) > 0x8f)) return 0;
  return n;
}

// The text itself where it is valid, which most are; each bad byte is U+FFFD.
std::string valid_utf8(std::string text) {
  std::string_view rest = text;
  while (!rest.empty() && character(rest) != 0) rest.remove_prefix(character(rest));
  if (rest.empty()) return text;
  std::string valid = text.substr(0, text.size() - rest.size());
  while (!rest.empty()) {
    const size_t n = character(rest);
    valid += n == 0 ? "\xef\xbf\xbd" : rest.substr(0, n);
    rest.remove_prefix(n == 0 ? 1 : n);
  }
  return valid;
}

}  // namespace

std::span<const Column> columns_of(TableRows rows) {
  if (rows == TableRows::events) return kEventColumns;
  return kRecordColumns;
}

LogTable::LogTable(std::shared_ptr<const std::vector<ProcessLog>> logs, TableRows rows)
    : logs_(std::move(logs)), rows_(rows), starts_{0}, dictionaries_(columns().size()) {
  for (const ProcessLog& log : *logs_)
    starts_.push_back(starts_.back() +
                      (rows == TableRows::events ? log.events.size() : log.slots.size()));
}

uint64_t LogTable::event_of(const ProcessLog& log, uint64_t slot) {
  // Events without slots share their first_slot with the one that follows: the last of them has it.
  return log.events.of_slot(slot);
}

const Dictionary& LogTable::dictionary(const Column& column) const {
  std::lock_guard lock(mutex_);
  // By the column's place among columns(): a column of another table is no key here.
  auto& made = dictionaries_[static_cast<size_t>(&column - columns().data())];
  if (!made) made = std::make_unique<const Dictionary>(make_dictionary(column));
  return *made;
}

Dictionary LogTable::make_dictionary(const Column& column) const {
  Dictionary d;
  for (const ProcessLog& log : *logs_) d.codes.emplace_back(column.source->size(log), -1);
  std::unordered_map<std::string, int32_t> seen;
  for_rows(0, size(), [&](const Row& row) {
    // A text of the log that no row has is not in the dictionary.
    const Value key = column.value(row);
    if (!key || d.codes[row.process][*key] >= 0) return;
    std::string value = valid_utf8(column.source->text(row.log, *key));
    auto [at, is_new] = seen.try_emplace(value, static_cast<int32_t>(d.values.size()));
    if (is_new) d.values.push_back(std::move(value));
    d.codes[row.process][*key] = at->second;
  });
  return d;
}

}  // namespace opguard
