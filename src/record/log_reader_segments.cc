// The part of the reader for a log that is cut: which segments there are, and what each must be.
//
//   told of: 0 to 3, 0 removed; there: 1, 2 and 4
//   1, 2    read, and each must bind the chunks that the log says
//   3       damage: the segment is not there. The reading ends here, or passes over it (salvage)
//   4       read up to where it is whole: its process did not end it
#include <algorithm>
#include <filesystem>

#include "record/log_reader.h"

namespace opguard {

using namespace format;

const SegmentBytes* LogReader::segment(uint64_t number) const {
  const auto found = std::lower_bound(
      segments_.begin(), segments_.end(), number,
      [](const SegmentBytes& segment, uint64_t wanted) { return segment.number < wanted; });
  return found == segments_.end() || found->number != number ? nullptr : &*found;
}

// Behind the file itself, whose damage counts as coming last: what its segments hold was written
// before.
void LogReader::read_segments() {
  const ChunkChain of_file = chain_;
  const auto damage_of_file = std::exchange(log_.damage, "").empty()
                                  ? std::pair<size_t, std::string>()
                                  : std::exchange(damage_, {});
  const std::vector<Gap> gaps_of_file = std::exchange(log_.gaps, {});
  if (told_.removed > 0) begin_behind_removed();
  const uint64_t last = segments_.empty() ? 0 : segments_.back().number + 1;
  const uint64_t end = std::max<uint64_t>(told_.whole.size(), last);
  for (uint64_t number = told_.removed; number < end; ++number) {
    const SegmentBytes* found = segment(number);
    const Segment* told = number < told_.whole.size() ? &told_.whole[number] : nullptr;
    if (told != nullptr && told->first_event >= options_.until_event) {
      ended_early_ = true;
      break;
    }
    if (told != nullptr && step_over_segment(*told)) continue;
    if (found == nullptr || found->bytes.empty()) {
      where_ = " of " + segment_path(std::filesystem::path(log_.path).filename().string(), number);
      if (told != nullptr || number + 1 < end) {
        damage(0, "the segment is not there");
        log_.gaps.push_back({log_.events.size(), told == nullptr ? 0 : told->slots});
      }
    } else {
      read_segment(*found, told);
    }
    if (!log_.damage.empty() && !options_.salvage) break;
  }
  where_.clear();
  for (const Gap& gap : gaps_of_file) log_.gaps.push_back({log_.events.size(), gap.records});
  if (!damage_of_file.second.empty()) damage(damage_of_file.first, damage_of_file.second);
  if (!ending_) return;
  chain_ = of_file;
  if (std::string wrong = take(*ending_); !wrong.empty())
    damage(static_cast<size_t>(ending_->payload.data() - bytes_.data()) - kChunkHeaderSize,
           "the chunk of end is refused: " + wrong);
}

// What is before the first segment that was kept is known by its counts alone.
void LogReader::begin_behind_removed() {
  const Segment& last = told_.whole[told_.removed - 1];
  next_event_ = last.first_event + last.events;
  next_slot_ = last.first_slot + last.slots;
  log_.removed = {told_.removed, next_event_, next_slot_, last.last_step};
  stepped_over_ = true;
  stretches_ = {{next_event_, 0}};
  if (options_.from_event < next_event_) log_.gaps.push_back({0, next_slot_});
}

// It holds events that nobody wants, and no others.
bool LogReader::step_over_segment(const Segment& told) {
  const uint64_t end = told.first_event + told.events;
  if (told.first_event != next_event_ || end > options_.from_event || !log_.events.empty())
    return false;
  next_event_ = end;
  stepped_over_ = true;
  return true;
}

// told: what the file says of it; none of one that was not ended.
void LogReader::read_segment(const SegmentBytes& segment, const Segment* told) {
  const std::string_view file = std::exchange(bytes_, segment.bytes);
  const ChunkFinder finder = std::exchange(finder_, ChunkFinder(segment.bytes));
  where_ = " of " + segment.name;
  chain_ = {};
  bool cut = false;
  std::string wrong = finder_.check_header(cut);
  if (wrong.empty() && !cut && (finder_.salt() != finder.salt() || !is_cut()))
    wrong = "it is another log's";
  if (!wrong.empty())
    damage(0, wrong);
  else if (cut)
    damage(bytes_.size(), "cut short in the header");
  else
    read_chunks(kHeaderSize);
  const bool whole =
      told == nullptr || (chain_.chunks() == told->chunks && chain_.value() == told->chunk_chain);
  if (!whole) damage(bytes_.size(), "its log binds other chunks than those before this byte");
  bytes_ = file;
  finder_ = finder;
}

}  // namespace opguard
