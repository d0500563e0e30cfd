// Each step's entry has a chain of all digests so far. So one look at a step tells whether
// everything before it was equal, and the first step that differs is found by halving.
//
//   entry   0    1    2    3          a   c0 c1 c2 c3
//   chain   =    =    x    x          b   c0 c1 d2 d3       entry 2 is the first
//
// All ranks are searched together, and the earliest of their first steps counts for the job.
//
// `bring` fetches blocks of indexes that lie elsewhere. It is asked before each look, for all logs
// in one call.
#include "align/pair/equal_start.h"

#include <algorithm>
#include <utility>

#include "align/pair/search_indexes.h"

namespace opguard {
namespace {

// "" or why a log cannot be stepped over by its index.
std::string open_index(const std::string& log, StepIndex& index, const Bring* bring) {
  if (!index.open(step_index_path(log), bring)) return index.why();
  if (!index.end()) return log + ": was not closed";
  if (index.end()->lost > 0) return log + ": has lost records";
  if (index.steps() == 0) return log + ": has no step";
  return "";
}

// What a log holds before an entry of its index, or in all.
struct StepsBefore {
  uint64_t events = 0, records = 0, exact_chain = 0, unmoved = 0;
};
std::optional<StepsBefore> steps_before(StepIndex& index, uint64_t entry) {
  if (entry == index.steps())
    return StepsBefore{index.end()->events, index.end()->records, index.end()->exact_chain,
                       index.end()->unmoved};
  const std::optional<StepEntry> found = index.at(entry);
  if (!found) return {};
  return StepsBefore{found->events_before, found->records_before, found->exact_before,
                     found->unmoved_before};
}

}  // namespace

std::optional<IndexedRuns> IndexedRuns::open(const std::string& dir_a, const std::string& dir_b,
                                             std::string& why, const Bring* bring) {
  const std::vector<std::string> a = log_files(dir_a, why), b = log_files(dir_b, why);
  if (a.empty() || b.empty()) return {};
  return open(a, b, why, bring);
}

std::optional<IndexedRuns> IndexedRuns::open(const std::vector<std::string>& a,
                                             const std::vector<std::string>& b, std::string& why,
                                             const Bring* bring) {
  if (a.size() != b.size()) {
    why = "the runs have other numbers of logs";
    return {};
  }
  if (bring != nullptr) {
    std::vector<FilePiece> pieces;
    for (const std::vector<std::string>* logs : {&a, &b})
      for (const std::string& log : *logs)
        for (FilePiece& piece : StepIndex::opening(step_index_path(log)))
          pieces.push_back(std::move(piece));
    why = pieces.empty() ? "there is no index of steps" : (*bring)(pieces);
    if (!why.empty()) return {};
  }
  IndexedRuns runs;
  runs.bring_ = bring;
  for (size_t i = 0; i < a.size(); ++i) {
    Both& both = runs.logs_.emplace_back();
    both.path_a = a[i], both.path_b = b[i];
    why = open_index(a[i], both.a, bring);
    if (why.empty()) why = open_index(b[i], both.b, bring);
    if (!why.empty()) return {};
  }
  if (!runs.find_first_apart() || !runs.find_kept()) {
    why = "an index of steps cannot be read";
    return {};
  }
  return runs;
}

bool IndexedRuns::find_first_apart() {
  std::vector<IndexedEntry> ends;
  for (Both& both : logs_) {
    const uint64_t common = std::min(both.a.steps(), both.b.steps());
    for (StepIndex* index : {&both.a, &both.b})
      for (const uint64_t entry : {common - 1, index->steps() - 1}) ends.push_back({index, entry});
  }
  if (!bring_entries(ends, bring_)) return false;
  std::vector<IndexSearch> searches;
  for (Both& both : logs_) {
    const uint64_t common = std::min(both.a.steps(), both.b.steps());
    auto differ = [&both](uint64_t i) -> std::optional<bool> {
      const auto x = both.a.at(i), y = both.b.at(i);
      if (!x || !y) return {};
      return x->chain != y->chain || x->moved_chain != y->moved_chain;
    };
    // Where all the common steps are equal there is nothing to search for.
    const auto last = differ(common - 1);
    if (!last) return false;
    if (*last)
      searches.push_back({{&both.a, &both.b}, common - 1, differ});
    else
      searches.push_back({{}, common, [](uint64_t) { return false; }});
  }
  const auto found = search_indexes(searches, bring_);
  if (!found) return false;
  std::vector<IndexedEntry> apart;
  for (size_t i = 0; i < logs_.size(); ++i)
    for (StepIndex* index : {&logs_[i].a, &logs_[i].b}) apart.push_back({index, (*found)[i]});
  if (!bring_entries(apart, bring_)) return false;
  for (size_t i = 0; i < logs_.size(); ++i)
    for (StepIndex* index : {&logs_[i].a, &logs_[i].b}) {
      const auto end = index->at(index->steps() - 1);
      if (!end) return false;
      last_ = std::max(last_, end->step);
      if ((*found)[i] == index->steps()) continue;
      const auto first = index->at((*found)[i]);
      if (!first) return false;
      first_apart_ = std::min(first_apart_, first->step);
    }
  return true;
}

// Segments are removed from the front. The first step that begins behind what was removed is whole.
bool IndexedRuns::find_kept() {
  std::vector<IndexSearch> searches;
  for (Both& both : logs_)
    for (StepIndex* index : {&both.a, &both.b})
      if (const uint64_t removed = index->end()->removed; removed > 0)
        searches.push_back(
            {{index}, index->steps(), [index, removed](uint64_t i) -> std::optional<bool> {
               const auto entry = index->at(i);
               if (!entry) return {};
               return entry->events_before >= removed;
             }});
  const auto first = search_indexes(searches, bring_);
  if (!first) return false;
  for (size_t i = 0; i < searches.size(); ++i) {
    StepIndex& index = *searches[i].indexes[0];
    const bool none = (*first)[i] == index.steps();
    const auto entry = none ? std::nullopt : index.at((*first)[i]);
    if (!none && !entry) return false;
    kept_from_ = std::max(kept_from_, none ? last_ + 1 : entry->step);
  }
  return true;
}

// Of each log of one run the first entry of this step or a later one.
std::optional<std::vector<uint64_t>> IndexedRuns::first_entries_of(uint32_t step,
                                                                   StepIndex Both::* run) {
  std::vector<IndexSearch> searches;
  for (Both& both : logs_)
    searches.push_back({{&(both.*run)},
                        (both.*run).steps(),
                        [&index = both.*run, step](uint64_t i) -> std::optional<bool> {
                          const auto entry = index.at(i);
                          if (!entry) return {};
                          return entry->step >= step;
                        },
                        step});  // of a log that has each step once
  auto first = search_indexes(searches, bring_);
  if (!first) return {};
  std::vector<IndexedEntry> found;
  for (size_t i = 0; i < logs_.size(); ++i) found.push_back({&(logs_[i].*run), (*first)[i]});
  if (!bring_entries(found, bring_)) return {};
  return first;
}

//   first apart 40, margin 2                      from step 38 on
//   first apart 1, margin 2                       all is read
//   first apart 40, steps before 39 removed       from 39 on: the first that is kept
EqualStart IndexedRuns::start(uint32_t margin) {
  EqualStart start;
  const uint32_t first = first_apart_ == kNone ? last_ + 1 : first_apart_;
  // What differs first is not there, or not the step before it. Without that one it could not be
  // told whether a generator differs since then or from the start.
  if (first < kept_from_ || (first == kept_from_ && kept_from_ > 0)) return start;
  start.is_first_kept = kept_from_ > 0 && first - kept_from_ <= margin;
  if (first <= margin && !start.is_first_kept) return start;
  const uint32_t step = start.is_first_kept ? kept_from_ : first - margin;
  std::optional<Before> left_out = before(step);
  if (!left_out) return {};
  start.step = step;
  start.steps = left_out->steps;
  start.events = left_out->events;
  start.records = left_out->records;
  start.unmoved = left_out->unmoved;
  start.from_a = std::move(left_out->from_a);
  start.from_b = std::move(left_out->from_b);
  return start;
}

// The steps before it are equal: both logs have as many entries there, and events.
std::optional<IndexedRuns::Before> IndexedRuns::before(uint32_t step) {
  const auto from = first_entries_of(step, &Both::a);
  if (!from) return {};
  std::vector<IndexedEntry> of_b;
  for (size_t i = 0; i < logs_.size(); ++i) of_b.push_back({&logs_[i].b, (*from)[i]});
  if (!bring_entries(of_b, bring_)) return {};
  Before all;
  for (size_t i = 0; i < logs_.size(); ++i) {
    Both& both = logs_[i];
    const uint64_t entry = (*from)[i];
    const std::optional<StepsBefore> a = steps_before(both.a, entry),
                                     b = steps_before(both.b, entry);
    if (!a || !b || a->events != b->events) return {};
    all.from_a[both.path_a] = all.from_b[both.path_b] = a->events;
    all.events += a->events;
    all.records += a->records;
    all.steps = std::max(all.steps, entry);
    if (a->exact_chain != b->exact_chain) all.unmoved += a->unmoved;
  }
  return all;
}

// Where one log's index cannot be read, all is read to the end.
void IndexedRuns::end_behind(uint32_t steps, EqualStart& start) {
  if (first_apart_ > last_ || steps >= last_ - first_apart_) return;
  const uint32_t last = first_apart_ + steps;
  const auto of_a = first_entries_of(last + 1, &Both::a);
  const auto of_b = first_entries_of(last + 1, &Both::b);
  if (!of_a || !of_b) return;
  EqualStart ended = start;
  ended.last_step = last;
  for (size_t i = 0; i < logs_.size(); ++i)
    for (const bool is_a : {true, false}) {
      StepIndex& index = is_a ? logs_[i].a : logs_[i].b;
      const uint64_t first = is_a ? (*of_a)[i] : (*of_b)[i];
      if (first == index.steps()) continue;
      const auto entry = index.at(first);
      if (!entry) return;
      if (is_a)
        ended.until_a[logs_[i].path_a] = entry->events_before;
      else
        ended.until_b[logs_[i].path_b] = entry->events_before;
    }
  start = std::move(ended);
}

uint64_t IndexedRuns::equal_before(uint32_t step) {
  const std::optional<Before> found = before(step);
  return found ? found->events - found->unmoved : 0;
}

std::vector<IndexedRuns::ApartLog> IndexedRuns::apart_logs() {
  std::vector<ApartLog> apart;
  const auto of_a = first_entries_of(first_apart_, &Both::a);
  const auto of_b = first_entries_of(first_apart_, &Both::b);
  if (first_apart_ == kNone || !of_a || !of_b) return apart;
  for (size_t i = 0; i < logs_.size(); ++i) {
    Both& both = logs_[i];
    const auto a = both.a.at((*of_a)[i]), b = both.b.at((*of_b)[i]);
    if (!a || !b || a->step != first_apart_ || b->step != first_apart_) continue;
    if (a->chain == b->chain && a->moved_chain == b->moved_chain) continue;
    apart.push_back(
        {i, both.path_a, both.path_b, both.a.salt(), both.b.salt(), a->groups_at, b->groups_at});
  }
  return apart;
}

// An index's end binds its log's chunks; the reader has counted those it read.
bool IndexedRuns::belong_to(const Run& a, const Run& b) const {
  if (a.processes.size() != logs_.size() || b.processes.size() != logs_.size()) return false;
  auto is_of = [](const ProcessLog& log, const std::string& path, const StepIndex& index) {
    return log.path == path && log.closed && log.chunks == index.end()->chunks &&
           log.chunk_chain == index.end()->chunk_chain;
  };
  for (size_t i = 0; i < logs_.size(); ++i)
    if (!is_of(a.processes[i], logs_[i].path_a, logs_[i].a) ||
        !is_of(b.processes[i], logs_[i].path_b, logs_[i].b) ||
        a.processes[i].rank != b.processes[i].rank)
      return false;
  return true;
}

uint64_t IndexedRuns::steps() const {
  uint64_t most = 0;
  for (const Both& both : logs_) most = std::max(most, both.a.steps());
  return most;
}

uint64_t IndexedRuns::events() const {
  uint64_t all = 0;
  for (const Both& both : logs_) all += both.a.end()->events;
  return all;
}

uint64_t IndexedRuns::records() const {
  uint64_t all = 0;
  for (const Both& both : logs_) all += both.a.end()->records;
  return all;
}

uint64_t IndexedRuns::reads() const {
  uint64_t reads = 0;
  for (const Both& both : logs_) reads += both.a.reads() + both.b.reads();
  return reads;
}

uint64_t IndexedRuns::bytes_read() const {
  uint64_t bytes = 0;
  for (const Both& both : logs_) bytes += both.a.bytes_read() + both.b.bytes_read();
  return bytes;
}

}  // namespace opguard
