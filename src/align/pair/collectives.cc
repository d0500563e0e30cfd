// Two passes. match() finds the members of each collective by job, group and number. order() lets
// the processes run against each other, as far as their logs go.
//
//   rank 0   launch #1 ... done #1     enters at launch, waits at done
//   rank 1   all_reduce #1             one blocking event: launched and done
//   rank 2   (its log ends before)     whoever is furthest behind goes on without it
//
// A member enters where it launched and leaves where it was done. Its epoch moves on as it leaves,
// to one above the highest epoch of all who entered. A message's sender enters and does not wait.
//
// The cost of order(): each member is advanced once a collective, besides one search for the
// furthest behind for each that a log lacks.
#include "align/pair/collectives.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace opguard {

Collectives::Collectives(const Run& run) : at_(run.processes.size()), steps_(run.processes.size()) {
  match(run);
  order(run);
}

void Collectives::match(const Run& run) {
  // A job started again begins to number again: the k-th communicating process of a rank meets the
  // k-th ones of the others.
  using Key = std::tuple<uint32_t, std::string, uint32_t>;  // job, group or boundary, number
  std::map<Key, uint32_t> index;
  std::map<int32_t, uint32_t> jobs;  // by rank
  for (size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessLog& log = run.processes[p];
    uint32_t job = kNone;
    for (uint32_t e = 0; e < log.events.size(); ++e) {
      const Event& event = log.events[e];
      if (!(event.flags & kCollective)) continue;
      if (job == kNone) job = jobs[log.rank]++;
      if (event.sequence == 0 && event.group != kNone) continue;
      const Key key = event.sequence != 0 ? Key{job, log.text(event.group), event.sequence}
                                          : Key{job, log.text(event.boundary), event.occurrence};
      auto [found, fresh] = index.try_emplace(key, uint32_t(all_.size()));
      if (fresh) all_.emplace_back();
      at_[p][e] = found->second;
      std::vector<Member>& members = all_[found->second].members;
      if (members.empty() || members.back().process != int32_t(p))
        members.push_back({int32_t(p), e, e, true});
      members.back().done = e;
      bool leaves = false;
      for (const Slot& slot : log.slots_of(event)) leaves |= slot.kind != SlotKind::in;
      // "0-3:0>2": from one rank to another.
      const bool message = log.text(event.group).find('>') != std::string::npos;
      members.back().waits = !message || leaves;
    }
  }
}

std::vector<EventRef> Collectives::peers(const EventRef& ref) const {
  std::vector<EventRef> others;
  auto found = at_[ref.process].find(ref.event);
  if (found == at_[ref.process].end()) return others;
  for (const Member& member : all_[found->second].members)
    if (member.process != ref.process) others.push_back({member.process, member.launched});
  return others;
}

// Every process goes on until a collective that another member has not reached yet.
void Collectives::order(const Run& run) {
  struct Cursor {
    std::vector<std::pair<uint32_t, uint32_t>> events;  // event, index in all_
    size_t next = 0;
    uint32_t epoch = 0;
    bool forced = false;  // the missing member's log lacks it
  };
  std::vector<Cursor> cursors(run.processes.size());
  for (size_t p = 0; p < cursors.size(); ++p) {
    for (const auto& [event, collective] : at_[p]) cursors[p].events.push_back({event, collective});
    std::sort(cursors[p].events.begin(), cursors[p].events.end());
    steps_[p].push_back({0, 0});
  }
  struct Meeting {
    size_t reached = 0;
    uint32_t epoch = 0;  // highest of those that have reached it
    std::vector<size_t> waiting;
  };
  std::vector<Meeting> meetings(all_.size());
  auto member_of = [&](uint32_t collective, size_t process) -> const Member& {
    const std::vector<Member>& members = all_[collective].members;
    return *std::lower_bound(
        members.begin(), members.end(), int32_t(process),
        [](const Member& member, int32_t wanted) { return member.process < wanted; });
  };

  std::vector<size_t> ready;
  for (size_t p = cursors.size(); p-- > 0;) ready.push_back(p);
  std::vector<bool> blocked(cursors.size(), false), arrived(cursors.size(), false);
  auto advance = [&](size_t p) {
    Cursor& cursor = cursors[p];
    for (; cursor.next < cursor.events.size(); ++cursor.next) {
      const auto [event, collective] = cursor.events[cursor.next];
      const Member& member = member_of(collective, p);
      Meeting& meeting = meetings[collective];
      if (event == member.launched && !arrived[p]) {
        ++meeting.reached;
        meeting.epoch = std::max(meeting.epoch, cursor.epoch);
        arrived[p] = true;
        if (meeting.reached == all_[collective].members.size()) {
          for (size_t other : meeting.waiting) blocked[other] = false, ready.push_back(other);
          meeting.waiting.clear();
        }
      }
      if (event == member.done && member.waits) {
        if (meeting.reached < all_[collective].members.size() && !cursor.forced) {
          meeting.waiting.push_back(p);
          blocked[p] = true;
          return;
        }
        cursor.forced = false;
        if (all_[collective].members.size() > 1) {
          cursor.epoch = std::max(cursor.epoch, meeting.epoch + 1);
          steps_[p].push_back({event, cursor.epoch});
        }
      }
      arrived[p] = false;
    }
  };
  for (;;) {
    while (!ready.empty()) {
      const size_t p = ready.back();
      ready.pop_back();
      advance(p);
    }
    // Nobody can go on: a log ends early. Whoever is furthest behind goes on without it.
    size_t behind = cursors.size();
    for (size_t p = 0; p < cursors.size(); ++p)
      if (blocked[p] && (behind == cursors.size() || cursors[p].epoch < cursors[behind].epoch))
        behind = p;
    if (behind == cursors.size()) return;
    blocked[behind] = false;
    cursors[behind].forced = true;
    std::vector<size_t>& waiting =
        meetings[cursors[behind].events[cursors[behind].next].second].waiting;
    waiting.erase(std::find(waiting.begin(), waiting.end(), behind));
    ready.push_back(behind);
  }
}

const Collectives::Step& Collectives::step(const EventRef& ref) const {
  const std::vector<Step>& steps = steps_[ref.process];
  auto after =
      std::upper_bound(steps.begin(), steps.end(), ref.event,
                       [](uint32_t event, const Step& step) { return event < step.event; });
  return *std::prev(after);
}

uint32_t Collectives::epoch(const EventRef& ref) const { return step(ref).epoch; }
uint32_t Collectives::epoch_begin(const EventRef& ref) const { return step(ref).event; }

}  // namespace opguard
