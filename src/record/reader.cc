// record/reader.cc: a log file -> ProcessLog. A chunk is believed whole or not at all.
#include <algorithm>
#include <memory>

#include "record/chunk_chain.h"
#include "record/chunk_finder.h"
#include "record/event_code.h"
#include "record/file_map.h"
#include "record/format.h"
#include "record/record.h"
#include "record/text_chunks.h"

namespace opguard {

using namespace format;

std::string_view ProcessLog::callee(const Event& event) const {
  const auto found = locations.find(text(event.boundary));
  return found == locations.end() ? std::string_view() : found->second.callee;
}

const std::string& ProcessLog::text(uint32_t string) const {
  static const std::string kEmpty;
  return string < strings.size() ? strings[string] : kEmpty;
}

uint64_t Run::records() const {
  uint64_t n = 0;
  for (const ProcessLog& p : processes) n += p.slots.size();
  return n;
}

bool Run::cut_short() const {
  return std::any_of(processes.begin(), processes.end(),
                     [](const ProcessLog& log) { return log.cut_short(); });
}

namespace {

class Reader {
 public:
  Reader(std::string_view bytes, const ReadOptions& options, ProcessLog& log)
      : bytes_(bytes), finder_(bytes), options_(options), log_(log), texts_(log) {}

  // "" or why the file is no log this reader can read.
  std::string run();

 private:
  std::string take(const RawChunk& chunk);
  std::string take_events(std::string_view payload, uint32_t count);
  std::string take_observations(std::string_view payload, uint32_t count);
  std::string take_lost(Cursor& in, uint32_t count);
  std::string take_end(Cursor& in);
  void damage(size_t at, const std::string& what);
  // What a search behind the damage at `at` finds, as the end of a sentence; the gap goes to the
  // log.
  std::string what_follows(size_t at);
  void place_gaps();

  std::string_view bytes_;
  ChunkFinder finder_;
  const ReadOptions& options_;
  ProcessLog& log_;
  TextChunks texts_;
  EventDecoder decoder_;
  std::vector<Event> chunk_events_;  // of the chunk being read
  std::vector<Slot> chunk_slots_;
  std::vector<EventDecoder::Stretch> stretches_{{0, 0}};
  std::vector<Gap> lost_;          // by own index
  uint64_t next_event_ = 0;        // own index
  uint64_t next_slot_ = 0;         // as the writer counts
  uint64_t next_observation_ = 0;  // as well
  ChunkChain chain_;               // of the chunks believed so far
};

std::string Reader::take_events(std::string_view payload, uint32_t count) {
  Cursor in(payload);
  const uint64_t first = in.varint(), first_slot = in.varint();
  if (!in.ok()) return "its length does not fit its content";
  const uint64_t events = log_.events.size(), slots = log_.slots.size();
  const bool hole = first != next_event_ || first_slot != next_slot_;
  if (hole) {
    if (!options_.salvage || log_.damage.empty() || first < next_event_ || first_slot < next_slot_)
      return "events before it are missing";
    stretches_.push_back({first, events});
  }
  payload.remove_prefix(payload.size() - in.left());
  chunk_events_.clear();
  std::string wrong = decoder_.take(payload, count, stretches_,
                                    {log_.strings.size(), log_.metas.size(), events, slots},
                                    chunk_slots_, &chunk_events_);
  if (!wrong.empty()) {
    if (hole) stretches_.pop_back();
    return wrong;
  }
  for (const Event& event : chunk_events_) log_.events.push_back(event);
  log_.slots.add({payload, count, first, slots}, chunk_slots_);
  if (hole) {
    log_.gaps.push_back({events, first_slot - next_slot_});
    next_event_ = first;
    next_slot_ = first_slot;
  }
  next_event_ += log_.events.size() - events;
  next_slot_ += log_.slots.size() - slots;
  return "";
}

std::string Reader::take_observations(std::string_view payload, uint32_t count) {
  Cursor in(payload);
  const uint64_t first = in.varint();
  if (!in.ok()) return "its length does not fit its content";
  const bool hole = first != next_observation_;
  if (hole && (!options_.salvage || log_.damage.empty() || first < next_observation_))
    return "observations before it are missing";
  payload.remove_prefix(payload.size() - in.left());
  if (std::string wrong = log_.observations.add(payload, count, log_.strings.size());
      !wrong.empty())
    return wrong;
  if (hole) log_.gaps.push_back({log_.events.size(), first - next_observation_});
  next_observation_ = first + count;
  return "";
}

std::string Reader::take_lost(Cursor& in, uint32_t count) {
  std::vector<Gap> places;
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    Gap place;
    place.event = in.varint();
    place.records = in.varint();
    places.push_back(place);
  }
  if (!in.ok() || in.left() != 0) return "";  // the caller says so
  for (const Gap& place : places) log_.lost += place.records;
  lost_.insert(lost_.end(), places.begin(), places.end());
  return "";
}

std::string Reader::take_end(Cursor& in) {
  const uint64_t events = in.varint(), slots = in.varint(), lost = in.varint();
  const uint64_t observations = finder_.version() >= kObservationsVersion ? in.varint() : 0;
  const uint64_t chunks = log_.bound ? in.varint() : 0, chain = log_.bound ? in.u64() : 0;
  if (!in.ok() || in.left() != 0) return "";  // the caller says so
  const bool whole = log_.damage.empty();
  if (whole && log_.bound && (chunks != chain_.chunks() || chain != chain_.value())) {
    const std::string held = std::to_string(chunks), found = std::to_string(chain_.chunks());
    return chunks == chain_.chunks()
               ? "it binds other chunks, or another order of them, than the " + found + " before it"
               : "it binds " + held + " chunks, and " + found + " are before it";
  }
  if (whole && (events != next_event_ || slots != next_slot_))
    return "it counts other events than the log holds";
  if (whole && observations != next_observation_)
    return "it counts other observations than the log holds";
  if (lost < log_.lost) return "it counts fewer losses than the log";
  if (!whole && (events > next_event_ || slots > next_slot_))
    log_.gaps.push_back({log_.events.size(), slots - std::min(slots, next_slot_)});
  if (!whole && observations > next_observation_)
    log_.gaps.push_back({log_.events.size(), observations - next_observation_});
  if (lost > log_.lost) lost_.push_back({events, lost - log_.lost});
  log_.lost = lost;
  log_.closed = true;
  return "";
}

std::string Reader::take(const RawChunk& chunk) {
  if (!texts_.started() && chunk.type != Chunk::process && !options_.salvage)
    return "the chunk of process before it is missing";
  if (TextChunks::has(chunk.type)) return texts_.take(chunk);
  Cursor in(chunk.payload);
  std::string wrong;
  switch (chunk.type) {
    case Chunk::events:
      return take_events(chunk.payload, chunk.count);
    case Chunk::sketches:
      // Behind a hole, indexes of events are no places in the log.
      return stretches_.size() > 1
                 ? ""
                 : log_.sketches.add(chunk.payload, chunk.count, log_.strings.size());
    case Chunk::observations:
      return take_observations(chunk.payload, chunk.count);
    case Chunk::lost:
      wrong = take_lost(in, chunk.count);
      break;
    case Chunk::end:
      wrong = take_end(in);
      break;
    default:
      return "its type is unknown";
  }
  if (wrong.empty() && (!in.ok() || in.left() != 0)) wrong = "its length does not fit its content";
  return wrong;
}

void Reader::damage(size_t at, const std::string& what) {
  if (!log_.damage.empty()) return;  // the first one is told
  log_.damage =
      "record " + std::to_string(log_.slots.size()) + " (byte " + std::to_string(at) + "): " + what;
}

std::string Reader::what_follows(size_t at) {
  RawChunk chunk;
  uint64_t events = 0, first_event = next_event_, first_slot = next_slot_;
  uint64_t rows = 0, first_row = next_observation_;
  for (at = finder_.next_chunk(at, chunk); at < bytes_.size();
       at = finder_.next_chunk(at + chunk.size(), chunk)) {
    Cursor in(chunk.payload);
    if (chunk.type == Chunk::observations) {
      const uint64_t row = in.varint();
      if (row < next_observation_) continue;
      if (rows == 0) first_row = row;
      rows += chunk.count;
    } else if (chunk.type == Chunk::events) {
      const uint64_t event = in.varint(), slot = in.varint();
      if (event < next_event_ || slot < next_slot_) continue;
      if (events == 0) {
        first_event = event;
        first_slot = slot;
      }
      events += chunk.count;
    }
  }
  const uint64_t missing = first_slot - next_slot_, missing_rows = first_row - next_observation_;
  log_.gaps.push_back({log_.events.size(), missing + missing_rows});
  if (events == 0 && rows == 0) return "";
  const auto and_rows = [](const char* before, uint64_t count) {
    return count == 0 ? "" : before + std::to_string(count) + " observations";
  };
  return "; missing there: " + std::to_string(first_event - next_event_) + " events, " +
         std::to_string(missing) + " records" + and_rows(", ", missing_rows) + "; " +
         std::to_string(events) + " events" + and_rows(" and ", rows) +
         " behind it are left out (dump --salvage shows them)";
}

// From own indexes to places in the log that was read.
void Reader::place_gaps() {
  for (const Gap& gap : lost_) {
    size_t i = stretches_.size() - 1;
    while (i > 0 && gap.event < stretches_[i].first) --i;
    const uint64_t end = i + 1 < stretches_.size() ? stretches_[i + 1].at : log_.events.size();
    const uint64_t offset = gap.event - std::min(gap.event, stretches_[i].first);
    log_.gaps.push_back({std::min(stretches_[i].at + std::min(offset, end), end), gap.records});
  }
  std::stable_sort(log_.gaps.begin(), log_.gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.event < b.event; });
  // Of one place, where the writer handed over what it had between two losses.
  std::vector<Gap> merged;
  for (const Gap& gap : log_.gaps) {
    const bool same = !merged.empty() && merged.back().event == gap.event &&
                      merged.back().records != 0 && gap.records != 0;
    if (same)
      merged.back().records += gap.records;
    else
      merged.push_back(gap);
  }
  log_.gaps = std::move(merged);
}

std::string Reader::run() {
  bool cut = false;
  if (std::string why = finder_.check_header(cut); !why.empty()) return why;
  if (cut) {
    damage(bytes_.size(), "cut short in the header");
    return "";
  }
  // Of long logs, what they are likely to hold (52 bytes an event), so that nothing is copied while
  // they grow. Memory that is not touched costs nothing.
  if (bytes_.size() > 1 << 20) log_.events.reserve(bytes_.size() / 44);
  log_.bound = finder_.version() >= kBindingVersion;
  log_.sketches.set_tells_calls(finder_.version() >= kCallsVersion);
  size_t at = kHeaderSize;
  while (!log_.closed) {
    if (at == bytes_.size()) {
      damage(at, "the log ends here, without having been closed");
      break;
    }
    RawChunk chunk;
    std::string wrong = finder_.find_chunk(at, chunk);
    if (wrong.empty()) {
      // The checksum held, yet what is inside may still contradict the rest: then nothing of it
      // stays.
      wrong = take(chunk);
      if (wrong.empty()) {
        chain_.add(bytes_.data() + at);
        at += chunk.size();
        continue;
      }
      wrong = std::string("the chunk of ") + chunk_name(chunk.type) + " is refused: " + wrong;
    }
    if (!options_.salvage) {
      // Its header was whole: a log that ends early, as a kill leaves it, has no hole.
      const bool cut_short = wrong.find("cut short") != std::string::npos;
      damage(at, cut_short ? wrong : wrong + what_follows(at + 1));
      break;
    }
    damage(at, wrong);
    const size_t next = finder_.next_chunk(at + 1, chunk);
    texts_.passed_over(next - at);
    at = next;
  }
  if (log_.closed && at != bytes_.size()) damage(at, "bytes follow the end of the log");
  log_.closed = log_.closed && log_.damage.empty();
  log_.events.finish();
  log_.slots.finish(log_.strings.size(), log_.metas.size());
  log_.sketches.finish(log_.events.size());
  for (const EventDecoder::Stretch& stretch : stretches_)
    log_.observations.add_stretch(stretch.first, stretch.at);
  log_.observations.finish(log_.events.size());
  place_gaps();
  return "";
}

}  // namespace

bool parse_log(std::string_view bytes, ProcessLog& log, std::string& error,
               const ReadOptions& options) {
  std::string path = std::move(log.path);
  log = {};
  log.path = std::move(path);
  error = Reader(bytes, options, log).run();
  return error.empty();
}

bool read_log(const std::string& path, ProcessLog& log, std::string& error,
              const ReadOptions& options) {
  log = {};
  log.path = path;
  auto map = std::make_shared<FileMap>();
  if (std::string wrong = map->open(path); !wrong.empty()) {
    error = path + ": cannot be read: " + wrong;
    return false;
  }
  log.slots.set_file(map);
  log.sketches.set_file(map);
  log.observations.set_file(map);
  error = Reader(map->bytes(), options, log).run();
  if (error.empty()) return true;
  error = path + ": " + error;
  return false;
}

}  // namespace opguard
