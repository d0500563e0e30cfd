// Every search is a state (EntrySearch) that asks for one entry and is told yes or no. A round
// collects what all open ones ask for, has it brought in one call, and tells each its answer.
#include "align/pair/search_indexes.h"

#include "record/entry_search.h"

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
  std::vector<EntrySearch> running;
  for (const IndexSearch& search : searches) running.emplace_back(search.entries, search.near);
  for (bool open = true; open;) {
    open = false;
    std::vector<IndexedEntry> wanted;
    for (size_t i = 0; i < searches.size(); ++i)
      if (running[i].is_open())
        for (StepIndex* index : searches[i].indexes) wanted.push_back({index, running[i].asks()});
    if (!bring_entries(wanted, bring)) return {};
    for (size_t i = 0; i < searches.size(); ++i) {
      if (!running[i].is_open()) continue;
      const std::optional<bool> there = searches[i].holds(running[i].asks());
      if (!there) return {};
      running[i].tell(*there);
      open |= running[i].is_open();
    }
  }
  std::vector<uint64_t> first;
  for (const EntrySearch& search : running) first.push_back(search.found());
  return first;
}

}  // namespace opguard
