// A search in breadth over names: from a name to its definitions, from these to the names that
// decide them.
//
//   lr (key)    def of `lr`: group["lr"] = lr, line 12        one statement
//               -> lr (variable): lr = get_lr(it), line 10    two
//               -> get_lr: def get_lr, lines 2-5: differs     three, the way is told
//
// In breadth, so the first way to a hunk is a shortest one. A way ends at a hunk: what is behind it
// only feeds what changed.
//
// Counterexample: values are not followed. An `if` that never held is a way all the same, where its
// function ran.
//
// The cost: at most kMostDefinitions statements, each looked for in the hunks once, and its names
// looked up by hash.
#include "suspects/trail.h"

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>

#include "patcher/line_diff.h"

namespace opguard {
namespace {

constexpr size_t kMostDefinitions = 4000;
constexpr size_t kNearby = 2;  // statements from the start: still on the trail

// `lr` in "lr: 0.1" and in "--lr 0.1", not in "colr".
bool holds_word(std::string_view line, std::string_view word) {
  auto inner = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !inner(line[at - 1])) && (end == line.size() || !inner(line[end]))) return true;
  }
  return false;
}

class Follower {
 public:
  Follower(const TrailQuestion& question, size_t depth) : q_(question), depth_(depth) {
    read_texts();
  }

  TrailFound run(const std::vector<NameUse>& from) {
    for (const NameUse& use : from) push(use, 0, kNone);
    while (!queue_.empty() && met_.size() < kMostDefinitions) {
      const Work work = queue_.front();
      queue_.pop_front();
      if (work.depth >= depth_) continue;
      for (const Definition& d : q_.definitions.of(work.use)) meet(d, work);
    }
    // Last: a statement that reads the setting says more.
    for (const NameUse& use : from)
      if (!use.plain) look_in_texts(use.name, kNone);
    return std::move(found_);
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  struct Work {
    NameUse use;
    size_t depth;   // statements before it
    uint32_t from;  // of met_
  };
  struct Met {
    Definition definition;
    uint32_t from;
  };

  void push(const NameUse& use, size_t depth, uint32_t from) {
    // An attribute is the same wherever it is read; `self.x` is its class's.
    const uint32_t file = use.plain || use.own ? use.file : 0;
    const uint32_t scope = use.plain || use.own ? use.scope : 0;
    if (seen_.insert({use.name, use.plain, use.own, file, scope}).second)
      queue_.push_back({use, depth, from});
  }

  // A function counts with its whole body: any line of it may change what it returns.
  LineSpan lines_of(const Definition& d) const {
    const CodeFile& file = q_.code.files()[d.file];
    if (d.kind == Definition::Kind::function) return file.scopes[d.scope].lines;
    return file.statement_lines(d.item);
  }

  std::optional<uint32_t> hunk_at(uint32_t file, const LineSpan& lines) const {
    for (uint32_t i = 0; i < q_.hunks.size(); ++i)
      if (q_.pairs[q_.hunks[i].pair].file[q_.side] == file &&
          q_.hunks[i].lines[q_.side].meets(lines))
        return i;
    return {};
  }

  TrailStep step_of(const Definition& d) const {
    const CodeFile& file = q_.code.files()[d.file];
    const LineSpan lines = lines_of(d);
    // A keyword is shown with its call, where that is a line.
    std::string_view line = file.source->line_text(
        d.kind == Definition::Kind::function ? file.lines(d.item).first : lines.first);
    const size_t from = line.find_first_not_of(" \t");
    if (from != std::string_view::npos) line.remove_prefix(from);
    return {d.file, lines, std::string(line)};
  }

  Trail trail_to(uint32_t met) const {
    Trail trail;
    for (uint32_t at = met; at != kNone; at = met_[at].from)
      trail.steps.push_back(step_of(met_[at].definition));
    std::reverse(trail.steps.begin(), trail.steps.end());
    // `for g in groups: g["lr"] = lr` names the loop's line only once.
    trail.steps.erase(std::unique(trail.steps.begin(), trail.steps.end()), trail.steps.end());
    return trail;
  }

  void meet(const Definition& d, const Work& work) {
    const CodeFile& file = q_.code.files()[d.file];
    // Nobody has run it until then.
    if (!q_.ran.scope(d.file, d.scope)) return;
    if (!known_.insert({d.file, d.item}).second) return;
    const uint32_t at = uint32_t(met_.size());
    met_.push_back({d, work.from});
    // The functions of the first two statements are on the trail, whether or not a way goes on from
    // them.
    if (work.depth < kNearby) found_.scopes.emplace_back(d.file, d.scope);
    const std::vector<uint32_t> deciding = q_.definitions.decided_by(d);
    std::optional<uint32_t> hunk = hunk_at(d.file, lines_of(d));
    for (const uint32_t item : deciding)
      if (!hunk) hunk = hunk_at(d.file, file.lines(item));
    // Where no way leads to a change these are told: what gave the name its value at all.
    if (work.from == kNone) found_.setters.push_back(trail_to(at));
    if (hunk) {
      if (hunks_.insert(*hunk).second) {
        found_.changed.push_back(trail_to(at));
        found_.changed.back().hunk = hunk;
      }
      return;
    }
    for (const uint32_t item : deciding)
      for (const NameUse& use : q_.definitions.uses_in(d.file, item)) {
        look_in_texts(use.name, at);
        push(use, work.depth + 1, at);
      }
  }

  void read_texts() {
    for (const TextPair& pair : q_.texts) {
      std::vector<std::pair<uint32_t, std::string>> changed;
      const std::string& text = pair.text[q_.side];
      std::vector<std::string_view> lines;
      for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(std::string_view(text).substr(at, end - at));
        at = end + 1;
      }
      for (const LineChange& change : changed_lines(pair.text[0], pair.text[1])) {
        const uint32_t first = q_.side == 0 ? change.first_a : change.first_b;
        const uint32_t count = q_.side == 0 ? change.count_a : change.count_b;
        for (uint32_t i = first; i < first + count && i <= lines.size(); ++i)
          changed.emplace_back(i, lines[i - 1]);
      }
      texts_.push_back(std::move(changed));
    }
  }

  // A changed line of a settings file that names what is looked for.
  void look_in_texts(const std::string& name, uint32_t from) {
    for (uint32_t i = 0; i < texts_.size(); ++i)
      for (const auto& [number, line] : texts_[i])
        if (holds_word(line, name) && named_.insert(i).second) {
          Trail trail = from == kNone ? Trail() : trail_to(from);
          trail.text = i;
          trail.line = number;
          found_.changed.push_back(std::move(trail));
        }
  }

  const TrailQuestion& q_;
  const size_t depth_;
  std::deque<Work> queue_;
  std::vector<Met> met_;
  std::set<std::tuple<std::string, bool, bool, uint32_t, uint32_t>> seen_;
  std::set<std::pair<uint32_t, uint32_t>> known_;  // file and item of definitions
  std::set<uint32_t> hunks_, named_;
  std::vector<std::vector<std::pair<uint32_t, std::string>>> texts_;  // changed, by TextPair
  TrailFound found_;
};

}  // namespace

TrailFound follow_trail(const TrailQuestion& question, const std::vector<NameUse>& from,
                        size_t depth) {
  return Follower(question, depth).run(from);
}

}  // namespace opguard
