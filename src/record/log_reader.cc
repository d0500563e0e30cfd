// What a chunk must be to be taken, after event 499:
//
//   events from 500 on                                taken
//   events from 800 on                                refused: "events before it are missing"
//   the same, salvage, and damage was passed over     taken, behind a gap
//   events from 400 on                                refused, always
//
// The end counts all that was before it, and binds the chunks. Behind damage it only tells what is
// missing at the end.
#include "record/log_reader.h"

#include <algorithm>

#include "record/bring_log.h"

namespace opguard {

using namespace format;

std::string LogReader::take_events(std::string_view payload, uint32_t count) {
  Cursor in(payload);
  const uint64_t first = in.varint(), first_slot = in.varint();
  if (!in.ok()) return "its length does not fit its content";
  const uint64_t events = log_.events.size(), slots = log_.slots.size();
  if (std::exchange(stepped_over_, false) && first == next_event_) {
    next_slot_ = first_slot;
    stretches_ = {{first, 0}};
  }
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

std::string LogReader::take_observations(std::string_view payload, uint32_t count) {
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

std::string LogReader::take_lost(Cursor& in, uint32_t count) {
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

// Of a log of which a part was stepped over, what was not counted is not compared.
std::string LogReader::take_end(Cursor& in) {
  const uint64_t events = in.varint(), slots = in.varint(), lost = in.varint();
  const uint64_t observations = finder_.version() >= kObservationsVersion ? in.varint() : 0;
  const uint64_t chunks = log_.bound ? in.varint() : 0, chain = log_.bound ? in.u64() : 0;
  if (!in.ok() || in.left() != 0) return "";  // the caller says so
  const bool whole = log_.damage.empty();
  if (began_behind_ && (chunks != start_.chunks || chain != start_.chunk_chain))
    return "its index of steps is of another log";
  if (whole && log_.bound && !began_behind_ &&
      (chunks != chain_.chunks() || chain != chain_.value())) {
    const std::string held = std::to_string(chunks), found = std::to_string(chain_.chunks());
    return chunks == chain_.chunks()
               ? "it binds other chunks, or another order of them, than the " + found + " before it"
               : "it binds " + held + " chunks, and " + found + " are before it";
  }
  if (whole && !ended_early_ && (events != next_event_ || (slots != next_slot_ && !stepped_over_)))
    return "it counts other events than the log holds";
  if (whole && !ended_early_ && observations != next_observation_)
    return "it counts other observations than the log holds";
  if (lost < log_.lost) return "it counts fewer losses than the log";
  if (!whole && (events > next_event_ || slots > next_slot_))
    log_.gaps.push_back({log_.events.size(), slots - std::min(slots, next_slot_)});
  if (!whole && observations > next_observation_)
    log_.gaps.push_back({log_.events.size(), observations - next_observation_});
  if (lost > log_.lost) lost_.push_back({events, lost - log_.lost});
  log_.lost = lost;
  log_.chunks = chunks;
  log_.chunk_chain = chain;
  log_.closed = true;
  return "";
}

// Where the reading of events begins; what is before it and no event is read. Where the index says
// something that the log does not hold, from the front.
size_t LogReader::first_chunk() {
  if (start_.at == 0 || is_cut() || start_.salt != finder_.salt() || options_.salvage)
    return kHeaderSize;
  RawChunk chunk;
  uint32_t length = 0;
  if (start_.at >= bytes_.size() ||
      !check_chunk_header(bytes_.substr(start_.at), finder_.salt(), chunk, length).empty() ||
      chunk.type != Chunk::events)
    return kHeaderSize;
  Cursor in(bytes_.substr(start_.at + kChunkHeaderSize));
  const uint64_t first = in.varint();
  if (!in.ok() || first > options_.from_event) return kHeaderSize;
  began_behind_ = true;
  for (const LogExtent& stretch : start_.before)
    for (size_t at = stretch.at; at < stretch.at + stretch.bytes; at += chunk.size()) {
      std::string wrong = at < bytes_.size() ? finder_.find_chunk(at, chunk) : "not in the log";
      if (wrong.empty()) wrong = take(chunk);
      if (wrong.empty()) continue;
      damage(at, wrong);
      return bytes_.size();
    }
  next_event_ = first;
  stepped_over_ = true;
  return start_.at;
}

// The chunk at `at` holds events that nobody wants, and no others.
bool LogReader::step_over(size_t at, size_t& size) {
  if (next_event_ >= options_.from_event || !log_.events.empty()) return false;
  RawChunk chunk;
  uint32_t length = 0;
  const std::string_view bytes = bytes_.substr(at);
  if (!check_chunk_header(bytes, finder_.salt(), chunk, length).empty() ||
      chunk.type != Chunk::events || length > bytes.size() - kChunkHeaderSize)
    return false;
  Cursor in(bytes.substr(kChunkHeaderSize, length));
  if (in.varint() != next_event_ || !in.ok() || next_event_ + chunk.count > options_.from_event)
    return false;
  next_event_ += chunk.count;
  stepped_over_ = true;
  size = kChunkHeaderSize + length;
  return true;
}

// Of the first chunk that was read, what is before the first event that is wanted.
void LogReader::drop_before() {
  if (stretches_.size() > 1) return;
  const uint64_t first = stretches_[0].first;
  const uint64_t drop =
      std::min(options_.from_event - std::min(first, options_.from_event), log_.events.size());
  log_.events_before = stepped_over_ ? next_event_ : first + drop;
  if (drop == 0) return;
  EventTable left;
  left.reserve(log_.events.size() - drop);
  for (uint64_t e = drop; e < log_.events.size(); ++e) {
    Event event = log_.events[e];
    event.begin -= std::min<uint64_t>(event.begin, drop);
    if (event.forward != kNone)
      event.forward = event.forward < drop ? kNone : static_cast<uint32_t>(event.forward - drop);
    left.push_back(event);
  }
  log_.events = std::move(left);
  log_.sketches = {};
}

// Behind the last event that is wanted: the log's end, if the index knows it and the file's last
// bytes hold it. Else where the reading is.
size_t LogReader::end_chunk(size_t at) {
  if (next_event_ < options_.until_event || !began_behind_ || ended_early_) return at;
  RawChunk chunk;
  for (size_t next = std::max(at, bytes_.size() - std::min<size_t>(bytes_.size(), kEndBytes));
       (next = finder_.next_chunk(next, chunk)) < bytes_.size(); ++next)
    if (chunk.type == Chunk::end && next + chunk.size() == bytes_.size()) {
      ended_early_ = next > at;
      return next;
    }
  return at;
}

// What the last chunk that was read holds beyond.
void LogReader::drop_behind() {
  const uint64_t left = options_.until_event - std::min(options_.until_event, log_.events_before);
  if (left >= log_.events.size()) return;
  log_.slots.truncate(log_.events[left].first_slot);
  log_.events.truncate(left);
}

// Whatever is wrong is said, and nothing of the chunk stays.
std::string LogReader::take(const RawChunk& chunk) {
  if (!texts_.started() && chunk.type != Chunk::process && !options_.salvage)
    return "the chunk of process before it is missing";
  const bool of_events = chunk.type == Chunk::events || chunk.type == Chunk::sketches;
  if (is_cut() && of_events == where_.empty())
    return of_events ? "it belongs into a segment" : "it does not belong into a segment";
  if (TextChunks::has(chunk.type)) return texts_.take(chunk);
  Cursor in(chunk.payload);
  std::string wrong;
  switch (chunk.type) {
    case Chunk::events:
      return take_events(chunk.payload, chunk.count);
    case Chunk::sketches:
      // Behind a hole, indexes of events are no places in the log.
      return stretches_.size() > 1 || stretches_[0].first > 0 || stepped_over_
                 ? ""
                 : log_.sketches.add(chunk.payload, chunk.count, log_.strings.size());
    case Chunk::observations:
      return take_observations(chunk.payload, chunk.count);
    case Chunk::lost:
      wrong = take_lost(in, chunk.count);
      break;
    case Chunk::segments:
      return told_.take(chunk.payload, chunk.count);
    case Chunk::removed:
      return told_.take_removed(chunk.payload);
    case Chunk::end:
      if (is_cut() && !ending_) {
        ending_ = chunk;
        return "";
      }
      wrong = take_end(in);
      break;
    default:
      return "its type is unknown";
  }
  if (wrong.empty() && (!in.ok() || in.left() != 0)) wrong = "its length does not fit its content";
  return wrong;
}

void LogReader::damage(size_t at, const std::string& what) {
  if (!log_.damage.empty()) return;  // the first one is told
  damage_ = {at, what};
  log_.damage = "record " + std::to_string(log_.slots.size()) + " (byte " + std::to_string(at) +
                where_ + "): " + what;
}

std::string LogReader::what_follows(size_t at) {
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
void LogReader::place_gaps() {
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

// Up to the end of the file, or the first damage.
void LogReader::read_chunks(size_t at) {
  // Of long logs, what they are likely to hold (52 bytes an event), so that nothing is copied while
  // they grow. Memory that is not touched costs nothing.
  if (bytes_.size() - at > 1 << 20)
    log_.events.reserve(log_.events.size() + (bytes_.size() - at) / 44);
  const bool of_segment = !where_.empty();
  while (!log_.closed && (of_segment || !ending_)) {
    if (at == bytes_.size()) {
      if (!of_segment) damage(at, "the log ends here, without having been closed");
      return;
    }
    if (!of_segment) at = end_chunk(at);
    if (size_t size = 0; step_over(at, size)) {
      chain_.add(bytes_.data() + at);
      at += size;
      continue;
    }
    RawChunk chunk;
    std::string wrong = finder_.find_chunk(at, chunk);
    if (wrong.empty()) {
      // The checksum held, yet what is inside may still contradict the rest: then nothing of it
      // stays.
      wrong = take(chunk);
      if (wrong.empty()) {
        if (!ending_ || of_segment) chain_.add(bytes_.data() + at);
        at += chunk.size();
        continue;
      }
      wrong = std::string("the chunk of ") + chunk_name(chunk.type) + " is refused: " + wrong;
    }
    if (!options_.salvage) {
      // Its header was whole: a log that ends early, as a kill leaves it, has no hole.
      const bool cut_short = wrong.find("cut short") != std::string::npos;
      damage(at, cut_short ? wrong : wrong + what_follows(at + 1));
      return;
    }
    damage(at, wrong);
    const size_t next = finder_.next_chunk(at + 1, chunk);
    texts_.passed_over(next - at);
    at = next;
  }
  if (at != bytes_.size()) damage(at, "bytes follow the end of the log");
}

std::string LogReader::run() {
  bool cut = false;
  if (std::string why = finder_.check_header(cut); !why.empty()) return why;
  if (cut) {
    damage(bytes_.size(), "cut short in the header");
    return "";
  }
  log_.bound = finder_.version() >= kBindingVersion;
  log_.sketches.set_tells_calls(finder_.version() >= kCallsVersion);
  read_chunks(first_chunk());
  if (is_cut()) read_segments();
  log_.closed = log_.closed && log_.damage.empty();
  if (options_.from_event > 0 || told_.removed > 0) drop_before();
  log_.events.finish();
  log_.slots.finish(log_.strings.size(), log_.metas.size());
  log_.sketches.finish(log_.events.size());
  for (const EventDecoder::Stretch& stretch : stretches_)
    log_.observations.add_stretch(stretch.first, stretch.at);
  log_.observations.finish(log_.events.size());
  place_gaps();
  if (options_.until_event != kToEnd && log_.gaps.empty()) drop_behind();
  return "";
}

}  // namespace opguard
