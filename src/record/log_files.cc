// In which order a segment ends, so that a kill anywhere leaves a log that tells the truth:
//
//   1. The segment is synced and named.         Killed now: it is there, and not told of.
//   2. The log says what it holds.
//   3. The log says that an old one is gone.    Killed now: it is there, and nobody reads it.
//   4. Its file is removed.
//
// Counterexample: to remove first. The log would tell of a segment that is missing, as if it were
// lost.
#include "record/log_files.h"

#include <unistd.h>

#include <cerrno>

#include "record/format.h"

namespace opguard {

using namespace format;

namespace {

bool is_of_events(std::string_view chunk) {
  const auto type = static_cast<Chunk>(chunk[3]);
  return type == Chunk::events || type == Chunk::sketches;
}

}  // namespace

bool LogFiles::create(const std::string& final_path, uint32_t salt, uint64_t now_ms,
                      std::string& error) {
  began_ms_ = now_ms;
  final_path_ = final_path;
  salt_ = salt;
  return log_.create(final_path, error);
}

// Of a cut log, texts first: what an event refers to is there before it.
bool LogFiles::append(std::string_view bytes, std::string& error) {
  placed_.clear();
  const size_t header = log_.is_empty() ? kHeaderSize : 0;
  if (!limits_.cut()) {
    if (!log_.append(bytes, error)) return false;
    chain_.add_all(bytes.substr(header));
    placed_.push_back({bytes.substr(header), log_bytes_ + header});
    log_bytes_ += bytes.size();
    return true;
  }
  texts_ = bytes.substr(0, header);
  events_.clear();
  for (bytes.remove_prefix(header); !bytes.empty();) {
    const size_t size = kChunkHeaderSize + load_u32(bytes.data() + 4);
    (is_of_events(bytes) ? events_ : texts_) += bytes.substr(0, size);
    bytes.remove_prefix(size);
  }
  if (!log_.append(texts_, error)) return false;
  chain_.add_all(std::string_view(texts_).substr(header));
  log_bytes_ += texts_.size();
  return events_.empty() || append_events(events_, error);
}

bool LogFiles::append_events(std::string_view chunks, std::string& error) {
  if (!segment_) {
    const std::string path = segment_path(final_path_, segments_);
    // A folder that the program has deleted or moved is not made again.
    if (::access(path.substr(0, path.rfind('/')).c_str(), F_OK) != 0) {
      error = "cannot create " + path + ": its folder is gone";
      return false;
    }
    auto segment = std::make_unique<LogFile>();
    if (!segment->create(path, error)) return false;
    segment_ = std::move(segment);
    segment_bytes_ = 0;
    segment_chain_ = {};
  }
  std::string first;
  if (segment_->is_empty()) {
    put_header(first, salt_, kVersion);
    first += chunks;
  }
  if (!segment_->append(first.empty() ? chunks : first, error)) return false;
  if (!first.empty()) segment_bytes_ = kHeaderSize;
  segment_chain_.add_all(chunks);
  placed_.push_back({chunks, (segments_ << kSegmentShift) + segment_bytes_});
  segment_bytes_ += chunks.size();
  return true;
}

bool LogFiles::is_full(uint64_t waiting, uint64_t now_ms) const {
  const uint64_t bytes = (segment_ ? segment_bytes_ : 0) + waiting;
  if (bytes == 0) return false;
  return bytes >= limits_.segment_bytes ||
         (limits_.keep_ms > 0 && now_ms - began_ms_ >= limits_.keep_ms / kSegmentsKept);
}

bool LogFiles::end_segment(const ChunkedSoFar& until, uint32_t first_step, uint32_t last_step,
                           uint64_t now_ms, std::string& chunk, std::string& error) {
  began_ms_ = now_ms;
  if (!segment_ || segment_->is_empty()) return true;
  if (!segment_->finish({}, error)) return false;
  const Segment whole{ended_.events,
                      until.events - ended_.events,
                      ended_.slots,
                      until.slots - ended_.slots,
                      first_step,
                      last_step,
                      segment_bytes_,
                      segment_chain_.chunks(),
                      segment_chain_.value()};
  put_chunk(chunk, salt_, Chunk::segments, 1, segment_payload(segments_, whole));
  kept_.push_back({segment_bytes_, now_ms, until.events, segment_->path()});
  kept_bytes_ += segment_bytes_;
  segment_.reset();
  ended_ = until;
  ++segments_;
  return true;
}

bool LogFiles::remove_old(uint64_t now_ms, std::string& error) {
  std::vector<std::string> old;
  // Room for the segment that begins now.
  auto too_much = [&] {
    return limits_.keep_bytes > 0 && kept_bytes_ + limits_.segment_bytes > limits_.keep_bytes;
  };
  auto too_old = [&] {
    return limits_.keep_ms > 0 && now_ms - kept_.front().ended_ms > limits_.keep_ms;
  };
  while (!kept_.empty() && (too_much() || too_old())) {
    old.push_back(std::move(kept_.front().path));
    kept_bytes_ -= kept_.front().bytes;
    removed_events_ = kept_.front().events_end;
    kept_.pop_front();
    ++removed_;
  }
  if (old.empty()) return true;
  std::string payload, chunk;
  put_varint(payload, removed_);
  put_chunk(chunk, salt_, Chunk::removed, 1, payload);
  if (!append(chunk, error)) return false;
  // One that cannot be removed stays, and takes room: the log does without it.
  for (const std::string& path : old) ::unlink(path.c_str());
  return true;
}

// Looks at the folder only where it seems full: who takes a segment away removes its file.
bool LogFiles::has_room() {
  if (limits_.spool_bytes == 0) return true;
  auto is_full = [&] { return kept_bytes_ + limits_.segment_bytes > limits_.spool_bytes; };
  if (is_full())
    std::erase_if(kept_, [&](const Kept& kept) {
      const bool taken = ::access(kept.path.c_str(), F_OK) != 0 && errno == ENOENT;
      if (taken) kept_bytes_ -= kept.bytes;
      return taken;
    });
  return !is_full();
}

bool LogFiles::sync() { return log_.sync() && (!segment_ || segment_->sync()); }

void LogFiles::abandon() {
  log_.abandon();
  if (segment_) segment_->abandon();
}

}  // namespace opguard
