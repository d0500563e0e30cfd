#include "align/pair/search_indexes.h"

namespace opguard {

bool bring_entries(const std::vector<IndexedEntry>& entries, const Bring* bring) {
  if (bring == nullptr) return true;
  std::vector<FilePiece> pieces;
  for (const IndexedEntry& wanted : entries)
    if (wanted.entry < wanted.index->steps())
      pieces.push_back(wanted.index->block_of(wanted.entry));
  return pieces.empty() || (*bring)(pieces).empty();
}

std::optional<std::vector<uint64_t>> search_indexes(const std::vector<IndexSearch>& searches,
                                                    const Bring* bring) {
  struct Range {
    uint64_t low = 0, high = 0;
    bool is_open() const { return low < high; }
    uint64_t middle() const { return low + (high - low) / 2; }
  };
  std::vector<Range> ranges;
  for (const IndexSearch& search : searches) ranges.push_back({0, search.entries});
  for (bool open = true; open;) {
    open = false;
    std::vector<IndexedEntry> wanted;
    for (size_t i = 0; i < searches.size(); ++i)
      if (ranges[i].is_open())
        for (StepIndex* index : searches[i].indexes) wanted.push_back({index, ranges[i].middle()});
    if (!bring_entries(wanted, bring)) return {};
    for (size_t i = 0; i < searches.size(); ++i) {
      Range& range = ranges[i];
      if (!range.is_open()) continue;
      const uint64_t middle = range.middle();
      const std::optional<bool> there = searches[i].holds(middle);
      if (!there) return {};
      (*there ? range.high : range.low) = *there ? middle : middle + 1;
      open |= range.is_open();
    }
  }
  std::vector<uint64_t> first;
  for (const Range& range : ranges) first.push_back(range.low);
  return first;
}

}  // namespace opguard
