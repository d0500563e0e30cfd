// Rounds of votes, until no pair changes or eight are over. A round tries the surest thing first.
//
//   pair_same_flow      both name each other by their makers and readers, with a gain in votes
//   pair_same_content   unpaired events of equal contents, where both sides have as many
//   pair_near           only if neither changed anything: alone of its kind within 32 events
//
// Then pairs that have votes against them alone are taken apart, and pair_near looks at what that
// frees.
//
//   a   x = f(u)   y = g(u)   z = h(x, y)         swapped in b
//   b   y = g(u)   x = f(u)   z = h(x, y)         h reads x of f in both runs: f is f
//
// The cost: a stretch of 32,768 events of a at a time. A vote looks at an event's ports and at 16
// readers on each side at most. Stretches of equal contents are not looked at.
#include "align/pair/flow_pairs.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "align/pair/mix.h"

namespace opguard {
namespace {

constexpr uint32_t kStretch = 1 << 15;  // events of side a that are looked at together
constexpr uint32_t kNear = 32;       // events: how far an operator alone of its kind may have moved
constexpr size_t kMostReaders = 16;  // of one event that are asked
constexpr int kRounds = 8;
constexpr uint32_t kTwo = kNone - 1;  // no event: two are as good

// What the partners of makers and readers say about a pair.
struct Votes {
  int agree = 0, conflict = 0;
  int readers_against = 0;  // of the conflicts
  int net() const { return agree - conflict; }
};

// Side 0 is a.
class Stretch {
 public:
  Stretch(const TokenSequence& a, const TokenSequence& b, std::array<uint32_t, 2> begin,
          std::array<uint32_t, 2> end)
      : sides_{&a, &b},
        flow_{FlowGraph(a, begin[0], end[0]), FlowGraph(b, begin[1], end[1])},
        partner_{std::vector<uint32_t>(end[0] - begin[0], kNone),
                 std::vector<uint32_t>(end[1] - begin[1], kNone)} {}

  void pair(uint32_t a, uint32_t b) {
    for (int side : {0, 1}) {
      const uint32_t mine = side == 0 ? a : b;
      if (const uint32_t old = partner_[side][mine]; old != kNone) partner_[1 - side][old] = kNone;
    }
    partner_[0][a] = b;
    partner_[1][b] = a;
  }

  void settle() {
    for (int round = 0; round < kRounds; ++round) {
      note_places();
      bool changed = pair_same_flow();
      changed |= pair_same_content();
      if (!changed) changed = pair_near();
      if (!changed) break;
    }
    drop_contradicted();
    note_places();
    for (int round = 0; round < kRounds && pair_near(); ++round) note_places();
  }

  template <typename Take>
  void take(Take take) const {
    for (uint32_t i = 0; i < partner_[0].size(); ++i)
      if (partner_[0][i] != kNone) take(flow_[0].begin() + i, flow_[1].begin() + partner_[0][i]);
  }

 private:
  const Token& token(int side, uint32_t event) const {
    return sides_[side]->tokens[flow_[side].begin() + event];
  }
  bool alike(uint32_t i, uint32_t j) const {
    const Token &x = token(0, i), &y = token(1, j);
    return x.key == y.key && x.shapes == y.shapes && x.scalars == y.scalars && x.step == y.step &&
           flow_[0].port_count(i) == flow_[1].port_count(j);
  }
  bool equal(uint32_t i, uint32_t j) const {
    return token(0, i).key == token(1, j).key && token(0, i).content == token(1, j).content;
  }

  // Whether what one event reads comes from the partner of what another event reads on the other
  // side. 1: yes, -1: no, 0: the flow does not say. It says nothing where either is made by an
  // event without a partner, as where one run casts or copies what the other hands on.
  int same_maker(int side, const Port& mine, const Port& other) const {
    if (mine.maker == kNone) return 0;
    const uint32_t made_by = partner_[side][mine.maker];
    if (made_by == kNone || mine.maker_port >= flow_[1 - side].port_count(made_by)) return 0;
    const Port& made = flow_[1 - side].port(made_by, mine.maker_port);
    if (same_place(made, other, mine.by_block)) return 1;
    return in_between(1 - side, other.maker, mine.maker) ? 0 : -1;
  }

  // Whether an event has no partner and is no other choice for `instead`, of the other side.
  bool in_between(int side, uint32_t event, uint32_t instead) const {
    return event != kNone && partner_[side][event] == kNone &&
           token(side, event).key != token(1 - side, instead).key;
  }

  static bool same_place(const Port& made, const Port& read, bool by_block) {
    if (by_block && made.place != 0 && read.place != 0) return made.place == read.place;
    return made.value != 0 && made.value == read.value;
  }

  Votes votes(uint32_t i, uint32_t j) const {
    Votes votes;
    const uint32_t ports = std::min(flow_[0].port_count(i), flow_[1].port_count(j));
    for (uint32_t p = 0; p < ports; ++p) {
      const Port &x = flow_[0].port(i, p), &y = flow_[1].port(j, p);
      if (x.kind != SlotKind::in || y.kind != SlotKind::in) continue;
      const int ahead = same_maker(0, x, y), back = same_maker(1, y, x);
      if (ahead > 0 || back > 0 || (x.value != 0 && x.value == y.value))
        ++votes.agree;
      else if (ahead < 0 || back < 0)
        ++votes.conflict;
    }
    ask_readers(0, i, j, votes);
    ask_readers(1, j, i, votes);
    return votes;
  }

  void ask_readers(int side, uint32_t mine, uint32_t other, Votes& votes) const {
    size_t asked = 0;
    for (const Reader& reader : flow_[side].readers(mine)) {
      if (++asked > kMostReaders) break;
      const uint32_t partner = partner_[side][reader.event];
      if (partner == kNone || reader.port >= flow_[1 - side].port_count(partner)) continue;
      const Port& read = flow_[side].port(reader.event, reader.port);
      const Port& read_there = flow_[1 - side].port(partner, reader.port);
      const bool same =
          read.maker_port < flow_[1 - side].port_count(other) &&
          same_place(flow_[1 - side].port(other, read.maker_port), read_there, read.by_block);
      if (!same && in_between(1 - side, read_there.maker, mine)) continue;
      ++(same ? votes.agree : votes.conflict);
      votes.readers_against += !same;
    }
  }

  // No partner, or one that the flow says something against.
  bool contested(int side, uint32_t event) const {
    const uint32_t other = partner_[side][event];
    if (other == kNone) return true;
    const uint32_t i = side == 0 ? event : other, j = side == 0 ? other : event;
    return !equal(i, j) && votes(i, j).conflict > 0;
  }

  // What a partner must exceed to be taken instead of the one there is.
  int net(int side, uint32_t event) const {
    const uint32_t other = partner_[side][event];
    if (other == kNone) return 0;
    return (side == 0 ? votes(event, other) : votes(other, event)).net();
  }

  // The event of the other side at the same place of the flow; kNone: none, or two as good.
  uint32_t best(int side, uint32_t event) const {
    std::vector<uint32_t> candidates;
    const FlowGraph &mine = flow_[side], &other = flow_[1 - side];
    for (uint32_t p = 0; p < mine.port_count(event); ++p) {
      const Port& port = mine.port(event, p);
      if (port.kind != SlotKind::in || port.maker == kNone) continue;
      const uint32_t made_by = partner_[side][port.maker];
      if (made_by == kNone) continue;
      for (const Reader& reader : other.readers(made_by))
        if (reader.port == p) candidates.push_back(reader.event);
    }
    for (const Reader& reader : mine.readers(event)) {
      const uint32_t partner = partner_[side][reader.event];
      if (partner == kNone || reader.port >= other.port_count(partner)) continue;
      const uint32_t maker = other.port(partner, reader.port).maker;
      if (maker != kNone) candidates.push_back(maker);
    }
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    uint32_t found = kNone;
    int most = 0;
    for (uint32_t candidate : candidates) {
      const uint32_t i = side == 0 ? event : candidate, j = side == 0 ? candidate : event;
      if (!alike(i, j)) continue;
      const int net = votes(i, j).net();
      if (net < most || net <= 0) continue;
      found = net == most ? kNone : candidate;
      most = net;
    }
    return found;
  }

  bool pair_same_flow() {
    bool changed = false;
    for (uint32_t i = 0; i < flow_[0].size(); ++i) {
      if (!contested(0, i)) continue;
      const uint32_t j = best(0, i);
      if (j == kNone || j == partner_[0][i] || !contested(1, j) || best(1, j) != i) continue;
      const int gain = votes(i, j).net();
      if (gain <= net(0, i) || gain <= net(1, j)) continue;
      pair(i, j);
      changed = true;
    }
    return changed;
  }

  // Of the same boundary, step and values: in order, where both sides have as many.
  bool pair_same_content() {
    std::unordered_map<uint64_t, std::array<std::vector<uint32_t>, 2>> groups;
    for (int side : {0, 1})
      for (uint32_t e = 0; e < flow_[side].size(); ++e)
        if (partner_[side][e] == kNone) {
          const Token& t = token(side, e);
          groups[mix(mix(t.key, t.content), t.step)][side].push_back(e);
        }
    bool changed = false;
    for (const auto& [key, group] : groups) {
      if (group[0].size() != group[1].size()) continue;
      for (size_t k = 0; k < group[0].size(); ++k) {
        if (!equal(group[0][k], group[1][k])) continue;
        pair(group[0][k], group[1][k]);
        changed = true;
      }
    }
    return changed;
  }

  // Events without a partner that are alone of their kind among those near by, on both sides; or
  // that the flow prefers to the others.
  bool pair_near() {
    std::unordered_map<uint64_t, std::array<std::vector<uint32_t>, 2>> groups;
    for (int side : {0, 1})
      for (uint32_t e = 0; e < flow_[side].size(); ++e)
        if (partner_[side][e] == kNone) {
          const Token& t = token(side, e);
          groups[mix(mix(mix(t.key, t.shapes), t.scalars), t.step)][side].push_back(e);
        }
    bool changed = false;
    for (const auto& [key, group] : groups)
      for (uint32_t i : group[0]) {
        const uint32_t j = best_near(0, i, group[1]);
        if (j == kNone || best_near(1, j, group[0]) != i) continue;
        pair(i, j);
        changed = true;
      }
    return changed;
  }

  // Distance in events of side b, through the pairs before.
  uint32_t distance(uint32_t i, uint32_t j) const {
    return i < place_.size() ? uint32_t(std::abs(int64_t(place_[i]) - int64_t(j))) : kNone;
  }

  uint32_t best_near(int side, uint32_t event, const std::vector<uint32_t>& others) const {
    uint32_t found = kNone;
    int most = 0;
    for (uint32_t other : others) {
      if (partner_[1 - side][other] != kNone) continue;
      const uint32_t i = side == 0 ? event : other, j = side == 0 ? other : event;
      if (distance(i, j) > kNear || !alike(i, j)) continue;
      const int net = votes(i, j).net();
      if (net < most) continue;
      found = net == most && found != kNone ? kTwo : other;
      most = net;
    }
    return found == kTwo ? kNone : found;
  }

  // Where in b each event of a would stand.
  void note_places() {
    place_.assign(flow_[0].size(), 0);
    uint32_t next = 0;
    for (uint32_t i = 0; i < place_.size(); ++i) {
      const uint32_t j = partner_[0][i];
      // A moved one says nothing about its neighbours.
      if (j != kNone && (j < next ? next - j : j - next) <= kNear) next = j + 1;
      place_[i] = j != kNone ? j : next;
    }
  }

  // Taken for each other, yet their makers and readers are not. In the same gap between pairs, an
  // input that comes from elsewhere is a difference worth showing and no reason.
  void drop_contradicted() {
    const std::vector<uint32_t> gaps[2] = {gaps_of(0), gaps_of(1)};
    for (uint32_t i = 0; i < flow_[0].size(); ++i) {
      const uint32_t j = partner_[0][i];
      if (j == kNone || equal(i, j)) continue;
      const Votes said = votes(i, j);
      if (said.agree > 0 || said.conflict == 0) continue;
      if (same_gap(gaps, i, j) && said.readers_against == 0) continue;
      partner_[0][i] = kNone;
      partner_[1][j] = kNone;
    }
  }

  // Of each event, the last one before it that has a partner; kNone: none.
  std::vector<uint32_t> gaps_of(int side) const {
    std::vector<uint32_t> gaps;
    uint32_t last = kNone;
    for (uint32_t e = 0; e < partner_[side].size(); ++e) {
      gaps.push_back(last);
      if (partner_[side][e] != kNone) last = e;
    }
    return gaps;
  }

  bool same_gap(const std::vector<uint32_t> (&gaps)[2], uint32_t i, uint32_t j) const {
    const uint32_t x = gaps[0][i], y = gaps[1][j];
    return x == kNone || y == kNone ? x == y : partner_[0][x] == y;
  }

  const TokenSequence* sides_[2];
  FlowGraph flow_[2];
  std::vector<uint32_t> partner_[2];
  std::vector<uint32_t> place_;
};

// The longest subsequence of `pairs` (by a) that increases in b is in order; the others moved.
void mark_moved(std::vector<FlowMatch>& pairs) {
  std::vector<uint32_t> tails;
  std::vector<uint32_t> before(pairs.size(), kNone);
  for (uint32_t i = 0; i < pairs.size(); ++i) {
    auto at = std::lower_bound(tails.begin(), tails.end(), pairs[i].b,
                               [&](uint32_t k, uint32_t b) { return pairs[k].b < b; });
    if (at != tails.begin()) before[i] = *(at - 1);
    if (at == tails.end())
      tails.push_back(i);
    else
      *at = i;
  }
  for (FlowMatch& pair : pairs) pair.moved = true;
  for (uint32_t i = tails.empty() ? kNone : tails.back(); i != kNone; i = before[i])
    pairs[i].moved = false;
}

}  // namespace

std::vector<FlowMatch> pair_by_flow(const TokenSequence& a, const TokenSequence& b,
                                    const Matches& ordered) {
  std::vector<FlowMatch> result;
  result.reserve(ordered.size());
  std::array<uint32_t, 2> begin{0, 0};
  for (size_t from = 0; from <= ordered.size();) {
    // A stretch ends before a pair, or with both sequences.
    size_t to = from;
    while (to < ordered.size() && ordered[to].first - begin[0] < kStretch &&
           ordered[to].second - begin[1] < 2 * kStretch)
      ++to;
    std::array<uint32_t, 2> end{uint32_t(a.tokens.size()), uint32_t(b.tokens.size())};
    if (to < ordered.size()) {
      to = std::max(to, from + 1);
      end = {ordered[to - 1].first + 1, ordered[to - 1].second + 1};
    }
    bool all_equal = end[0] - begin[0] == to - from && end[1] - begin[1] == to - from;
    for (size_t k = from; all_equal && k < to; ++k)
      all_equal = a.tokens[ordered[k].first].content == b.tokens[ordered[k].second].content;
    if (all_equal) {
      for (size_t k = from; k < to; ++k)
        result.push_back({ordered[k].first, ordered[k].second, false});
    } else {
      Stretch stretch(a, b, begin, end);
      for (size_t k = from; k < to; ++k)
        stretch.pair(ordered[k].first - begin[0], ordered[k].second - begin[1]);
      stretch.settle();
      stretch.take([&](uint32_t i, uint32_t j) { result.push_back({i, j, false}); });
    }
    begin = end;
    if (to == ordered.size()) break;
    from = to;
  }
  mark_moved(result);
  return result;
}

}  // namespace opguard
