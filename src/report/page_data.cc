// How the rows of a lane become columns, and how what they refer to becomes tables.
//
//   a row                                       in the columns
//   relu of a equal to relu of b                state 0, coordinates 4, forms 2, layouts 1
//   the next one, a microsecond later           event_a 0, start_a 1000: the distance from before
//   12 rows far from every difference           state 8, coordinates 0: gaps[0] is [12, 0, 0, 0]
//
// One row has one layout: its slots' kinds, names and shapes. Its values are behind each other in
// `values`: a's alone where both sides hold the same. A bit of the state says where they are both.
//
// Counterexample: an object a row with named fields. Its names alone would be most of the page.
//
// The cost: one pass over the rows. A table looks each key up in a map, so memory grows with what
// is different, not with what is recorded. The head comes last: it names rows by where they were
// listed.
#include "report/page_data.h"

#include <algorithm>
#include <map>
#include <optional>

#include "align/judge/pivot_view.h"
#include "align/pair/difference.h"
#include "nlohmann/json.hpp"
#include "report/background_text.h"
#include "report/drill_text.h"
#include "report/excerpt.h"
#include "report/identity.h"
#include "report/notes_text.h"
#include "report/page_background.h"
#include "report/page_tables.h"
#include "report/proof_text.h"
#include "report/rank_text.h"
#include "report/reasons.h"
#include "report/region.h"
#include "report/rows.h"
#include "report/simulated.h"
#include "report/step_text.h"
#include "report/terminal_event.h"
#include "report/unreached_text.h"
#include "support/text.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kContextLines = 3;  // around an expression

// State of a row: a kind of Equality, 0 (equal) to 5 (hidden), or one of these. kBothValues is a
// bit on top. Also page/data.js has these numbers.
enum RowState : int64_t { kOnlyA = 6, kOnlyB = 7, kLeftOut = 8, kBothValues = 16 };

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

class Page {
 public:
  Page(const Report& report, size_t max_rows)
      : report_(report),
        runs_{&report.a, &report.b},
        lanes_(lanes_of(report)),
        kept_(kept_rows(report, lanes_, max_rows)) {}

  std::string json() {
    std::string lanes;
    for (size_t i = 0; i < lanes_.size(); ++i) lanes += (i ? ",\n" : "\n") + lane(i);
    // Last, since the tables are filled by what refers to them.
    const Json head = summary();
    std::string text = "{\"head\":" + dump(head);
    text += ",\n\"lanes\":[" + lanes + "]";
    text += ",\n\"coordinates\":" + dump(coordinates_.keys());
    text += ",\n\"forms\":" + dump(forms_.keys());
    text += ",\n\"layouts\":" + dump(layouts_.keys());
    text += ",\n\"gaps\":" + dump(gaps_);
    text += ",\n\"sites\":[[" + sites_[0] + "],\n[" + sites_[1] + "]]";
    text += ",\n\"metas\":" + dump(metas_.keys());
    text += ",\n\"strings\":" + dump(strings_.keys());
    text += ",\n\"values\":\"" + values_.hex() + "\"}\n";
    return text;
  }

 private:
  const ProcessLog& log(int side, const Lane& lane) const {
    return runs_[side]->processes[side == 0 ? lane.a : lane.b];
  }

  // ---- Rows.

  int64_t string(const std::string& text) { return int64_t(strings_.index(shown(text))); }
  int64_t string(const ProcessLog& log, uint32_t text) {
    return text == kNone ? -1 : string(log.text(text));
  }

  int64_t site(int side, const ProcessLog& log, uint32_t event) {
    const std::string& boundary = log.text(log.events[event].boundary);
    auto [at, fresh] = site_index_[side].try_emplace(boundary, site_index_[side].size());
    if (!fresh) return int64_t(at->second);
    const EventView known = view(log, event);
    if (at->second > 0) sites_[side] += ',';
    sites_[side] += dump(place_json(*runs_[side], known.location, boundary, known.operator_name));
    return int64_t(at->second);
  }

  // Each source line is [number, before, expression, behind], cut at kLineColumns. The page colours
  // the third, and never looks for it.
  Json place_json(const Run& run, const Location& place, const std::string& boundary,
                  const std::string& operator_name) {
    const Provenance& from = *run.provenance;
    Json lines = Json::array();
    for (const ContextLine& line : files_.excerpt(place, kContextLines)) {
      const auto chars = shown_chars(line.text.line);
      std::string parts[3];
      uint32_t width = 0;
      for (size_t i = 0; i < chars.size(); ++i) {
        if ((width += chars[i].width) > kLineColumns) {
          parts[i < line.text.to ? 1 : 2] += "...";
          break;
        }
        parts[i < line.text.from ? 0 : i < line.text.to ? 1 : 2] += chars[i].text;
      }
      lines.push_back({line.number, parts[0], parts[1], parts[2]});
    }
    const std::string file = place.file.empty() ? place.path : place.file;
    return {{"id", shown(boundary)},
            {"op", shown(operator_name)},
            {"file", shown(file)},
            {"path", shown(from.home_path(place.path))},
            {"label", shown(from.label(place.path))},
            {"link", web_link(from, place.path, place.line)},
            {"line", place.line},
            // Without the expression the column is not known either.
            {"column", place.text.empty() ? 0 : place.column + 1},
            {"in", place.function == "<module>" ? "" : shown(place.function)},
            {"with", shown(place.package)},
            {"source", std::move(lines)}};
  }

  // Indices of page/data.js: STEP 0 to SEQUENCE 7.
  int64_t coordinate(const ProcessLog& log, const Event& event) {
    return int64_t(coordinates_.index({event.step, event.micro_batch, int64_t(event.phase),
                                       int64_t(event.kind), string(log, event.node), event.thread,
                                       string(log, event.group), event.sequence}));
  }

  int64_t meta(const ProcessLog& log, const Slot& slot) {
    return slot.meta == kNone ? int64_t(metas_.index("tensor"))
                              : int64_t(metas_.index(shown(shape_text(log, slot))));
  }

  // Slots of one row: [kind, name, meta in a, meta in b, flags] each, -1 for a side without it.
  // Their values go to `column`: a's, and b's where `both`.
  int64_t layout(const Lane& lane, const LaneRow& row, NumberColumn& column, bool& both) {
    Numbers layout;
    auto each = [&](auto visit) {
      if (row.paired()) {
        const ProcessLog &a = log(0, lane), &b = log(1, lane);
        for (const SlotPair& pair : pair_slots(a, a.events[row.a], b, b.events[row.b])) visit(pair);
        return;
      }
      const ProcessLog& own = log(row.a != kNone ? 0 : 1, lane);
      const EventSlots slots = own.slots_of(own.events[row.a != kNone ? row.a : row.b]);
      for (const Slot& slot : slots) {
        const uint64_t at = slots.index_of(slot);
        visit(row.a != kNone ? SlotPair{slot, {}, at, 0} : SlotPair{{}, slot, 0, at});
      }
    };
    both = false;
    each([&](const SlotPair& pair) {
      const Slot& any = pair.b ? *pair.b : *pair.a;
      const ProcessLog& own = log(pair.b ? 1 : 0, lane);
      layout.insert(layout.end(), {int64_t(any.kind), string(own, any.name),
                                   pair.a ? meta(log(0, lane), *pair.a) : -1,
                                   pair.b ? meta(log(1, lane), *pair.b) : -1,
                                   (pair.a ? pair.a->flags : 0) | (pair.b ? pair.b->flags : 0)});
      if (pair.a && pair.b && values_.index(*pair.a) != values_.index(*pair.b)) both = true;
    });
    each([&](const SlotPair& pair) {
      column.add(int64_t(values_.index(pair.either())));
      if (both) column.add(pair.b ? int64_t(values_.index(*pair.b)) : 0);
    });
    return int64_t(layouts_.index(layout));
  }

  std::string lane(size_t index) {
    const Lane& lane = lanes_[index];
    const ProcessLog* logs[2] = {lane.a >= 0 ? &log(0, lane) : nullptr,
                                 lane.b >= 0 ? &log(1, lane) : nullptr};
    NumberColumn state, coordinates, forms, layouts, values, events[2], starts[2], durations[2];
    int64_t expected[2] = {}, clock[2] = {};
    uint64_t counts[4] = {}, gap[4] = {};  // equal, differing, only a, only b
    int64_t first_difference = -1, first_state = -1, listed = 0;
    auto close_gap = [&] {
      if (gap[0] + gap[1] + gap[2] + gap[3] == 0) return;
      state.add(kLeftOut);
      coordinates.add(int64_t(gaps_.size()));
      gaps_.push_back(Json{gap[0], gap[1], gap[2], gap[3]});
      std::fill(gap, gap + 4, 0);
      ++listed;
    };
    listed_.emplace_back();
    for (size_t i = 0; i < lane.rows.size(); ++i) {
      const LaneRow& row = lane.rows[i];
      // As in `counts` and `gap`: 0 equal, 1 differing, 2 only a, 3 only b.
      const int kind = row.a == kNone ? 3 : row.b == kNone ? 2 : row.differs() ? 1 : 0;
      ++counts[kind];
      if (!kept_[index][i]) {
        ++gap[kind];
        listed_.back().push_back(-1);
        continue;
      }
      close_gap();
      if (kind != 0) {
        int64_t& first = is_state(report_, lane, row) ? first_state : first_difference;
        if (first < 0) first = listed;
      }
      listed_.back().push_back(listed++);
      const uint32_t at[2] = {row.a, row.b};
      const int own = row.a != kNone ? 0 : 1;
      const Event& event = logs[own]->events[at[own]];
      bool both = false;
      layouts.add(layout(lane, row, values, both));
      state.add((kind == 3   ? int64_t(kOnlyB)
                 : kind == 2 ? int64_t(kOnlyA)
                             : int64_t(row.equality)) |
                (both ? int64_t(kBothValues) : 0));
      coordinates.add(coordinate(*logs[own], event));
      Numbers form;
      for (int side : {0, 1}) {
        if (at[side] == kNone) {
          form.insert(form.end(), {-1, -1, -1, 0});
          continue;
        }
        const Event& e = logs[side]->events[at[side]];
        form.insert(form.end(), {site(side, *logs[side], at[side]), string(*logs[side], e.scalars),
                                 string(*logs[side], e.results), e.flags});
        // Distances are short where numbers are long: 0 for events behind one another.
        events[side].add(int64_t(at[side]) - expected[side]);
        expected[side] = int64_t(at[side]) + 1;
        starts[side].add(int64_t(e.start_ns) - clock[side]);
        clock[side] = int64_t(e.start_ns);
        durations[side].add(int64_t(e.end_ns - e.start_ns));
      }
      forms.add(int64_t(forms_.index(form)));
    }
    close_gap();

    Json head = {{"rank", lane.rank},
                 {"ordinal", lane.ordinal},
                 {"first", first_difference < 0 ? first_state : first_difference}};
    head["counts"] = {counts[0], counts[1], counts[2], counts[3]};
    for (int side : {0, 1})
      head[side == 0 ? "a" : "b"] =
          logs[side] ? Json{{"log", shown(logs[side]->path)}, {"pid", logs[side]->pid}} : Json();
    std::string text = "{\"head\":" + dump(head);
    auto add = [&](const char* name, const NumberColumn& column) {
      text += std::string(",\"") + name + "\":" + column.json();
    };
    add("state", state), add("coordinates", coordinates), add("forms", forms);
    add("layouts", layouts), add("values", values);
    add("event_a", events[0]), add("event_b", events[1]);
    add("start_a", starts[0]), add("start_b", starts[1]);
    add("time_a", durations[0]), add("time_b", durations[1]);
    return text + "}";
  }

  // ---- What is said of the whole.

  Json row_json(const RowRef& at) const {
    if (at.lane < 0 || listed_[at.lane][at.row] < 0) return nullptr;
    return {at.lane, listed_[at.lane][at.row]};
  }

  // The call or the text named in place of an operator, as a site.
  Json call_json(const Run& run, const EventView& event) {
    if (event.inner.file.empty() && !event.at_text) return nullptr;
    Json call = place_json(run, event.location, event.boundary, event.operator_name);
    if (!event) return call;
    call["text"] = event.at_text;
    call["inner"] = shown(event.inner.file) + ":" + std::to_string(event.inner.line) + "  " +
                    shown(event.inner.text);
    return call;
  }

  // Where a side that lacks the operator runs the same boundary, as a site.
  Json elsewhere_json(const Run& run, const EventView& own, const EventView& other) {
    const EventView found = own || own.at_text ? EventView() : same_boundary(run, other);
    if (!found) return nullptr;
    Json site = place_json(run, found.location, found.boundary, found.operator_name);
    site["when"] = coordinates(found);
    return site;
  }

  Json candidate_json(const Pivot& pivot) {
    const PivotView both = view(report_.a, report_.b, pivot);
    const EventView& event = both.either();
    return {
        {"kind", kind_name(pivot.kind)},
        {"why", shown(words(report_.a, report_.b, pivot.why))},
        {"slot", shown(both.slot)},
        {"boundary", event ? shown(event.boundary) : ""},
        {"region", region_json(pivot)},
        {"calls", {call_json(report_.a, both.a), call_json(report_.b, both.b)}},
        {"elsewhere",
         {elsewhere_json(report_.a, both.a, both.b), elsewhere_json(report_.b, both.b, both.a)}},
        {"a", row_json(find_row(lanes_, 0, pivot.a))},
        {"b", row_json(find_row(lanes_, 1, pivot.b))}};
  }

  // A text for each side, "" where it has nothing.
  Json region_json(const Pivot& pivot) const {
    const auto spans = region_of(report_.a, report_.b, pivot);
    if (spans[0].empty() && spans[1].empty()) return nullptr;
    return {shown(region_text(spans[0])), shown(region_text(spans[1]))};
  }

  static std::string shown_lines(const std::string& text) {
    std::string out;
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      out += (out.empty() ? "" : "\n") + shown(text.substr(at, end - at));
    }
    return out;
  }

  // Of several ranks: which ones, what is said of them, the row of the first.
  Json ranks_json() const {
    Json all = Json::array();
    for (const RankLine& line : rank_lines(report_)) {
      const auto share =
          std::find_if(report_.verdict.ranks.begin(), report_.verdict.ranks.end(),
                       [&](const RankShare& share) { return share.rank == line.ranks.front(); });
      const bool in_b = share->b.process >= 0;
      all.push_back({{"ranks", ranks_text(line.ranks)},
                     {"role", role_name(share->role)},
                     {"text", line.text},
                     {"row", row_json(find_row(lanes_, in_b, in_b ? share->b : share->a))}});
    }
    return all;
  }

  bool proven(size_t candidate) const {
    if (report_.proof)
      for (const Cause& cause : report_.proof->causes)
        if (cause.candidate == candidate) return cause.state == ProofState::proven;
    return false;
  }

  Json summary() {
    const Verdict& verdict = report_.verdict;
    const Alignment& alignment = report_.alignment;
    Json head;
    head["verdict"] = outcome_name(verdict.outcome);
    head["why"] = shown(words(report_.a, report_.b, verdict.why));
    if (report_.proof && report_.proof->state != ProofState::none)
      head["proof"] = {proof_name(report_.proof->state),
                       shown(words(report_.a, report_.b, report_.proof->why))};
    head["runs"] = {shown(run_title(report_.a)), shown(run_title(report_.b))};
    head["identity"] = identity_json(report_.identity);
    for (const Run* run : runs_) head["revisions"].push_back(run_json(*run));
    head["records"] = {report_.a.records(), report_.b.records()};
    head["pairs"] = alignment.pairs;
    head["unequal"] = alignment.unequal;
    head["certified"] = alignment.certified_prefix;
    head["boundary"] = row_json(last_certified(report_, lanes_));
    head["harmless"] = verdict.harmless;
    constexpr size_t kUnreachedShown = 100;
    head["unreached"] = verdict.unreached.size();
    head["unreached_pairs"] = unreached_lines(report_, kUnreachedShown);
    head["candidates"] = Json::array();
    for (size_t i = 0; i < verdict.candidates.size(); ++i) {
      head["candidates"].push_back(candidate_json(verdict.candidates[i]));
      if (const Background* known = background_of(report_, i))
        add_background(*known, head["candidates"].back());
      if (i >= report_.confirmations.size() || !report_.confirmations[i].why) continue;
      const Confirmation& found = report_.confirmations[i];
      Json proof = {{"causal", found.causal ? Json(*found.causal) : Json()},
                    {"why", shown(words(report_.a, report_.b, found.why))},
                    {"proven", proven(i)},
                    {"tensors", Json::array()}};
      for (const Difference& d : found.tensors)
        proof["tensors"].push_back(shown_lines(format_difference(d)));
      head["candidates"].back()["proof"] = std::move(proof);
    }
    head["ranks"] = ranks_json();
    // Tensors of other layouts make no rows: the page shows what a terminal does.
    if (report_.tolerance != nullptr)
      head["text"] = shown_lines(format_terminal(report_, /*colour=*/false));
    if (report_.drill) {
      const Drill& drill = *report_.drill;
      head["drill"] = std::to_string(drill.count_a) + " ATen operators in a, " +
                      std::to_string(drill.count_b) + " in b; " + shown(words(drill));
      for (const auto* op : {&drill.a, &drill.b})
        if (*op) head["drill_operators"].push_back(shown((*op)->name + "(" + (*op)->scalars + ")"));
    }
    const Coverage& coverage = report_.coverage;
    head["coverage"] = {coverage.attributed, coverage.activities, coverage.unmatched_sites};
    head["notes"] = Json::array();
    std::vector<std::string> notes = step_sentences(alignment);
    if (report_.simulated != nullptr) notes.insert(notes.begin(), simulated_text(report_));
    for (const std::string& note : words(report_.a, report_.b, verdict.notes))
      notes.push_back(note);
    for (const std::string& note : log_notes(report_.a, report_.b)) notes.push_back(note);
    for (const std::string& note : words(report_.settings)) notes.push_back(note);
    for (const std::string& note : notes) head["notes"].push_back(shown(note));
    head["hidden"] = {alignment.hidden, alignment.following};
    head["rules"] = Json::array();
    for (const std::string& rule : rule_sentences(report_)) head["rules"].push_back(shown(rule));
    return head;
  }

  const Report& report_;
  const Run* runs_[2];
  std::vector<Lane> lanes_;
  const std::vector<std::vector<bool>> kept_;  // by lane and row
  std::vector<std::vector<int64_t>> listed_;   // the page's index of a row, -1: left out
  SourceFiles files_;
  Table<std::string> strings_, metas_;
  Table<Numbers> coordinates_, forms_, layouts_;
  Values values_;
  Json gaps_ = Json::array();
  std::string sites_[2];  // entries of a list, as text: every event may have a place of its own
  std::map<std::string, size_t> site_index_[2];
};

}  // namespace

std::string page_data(const Report& report, size_t max_rows) {
  return Page(report, max_rows).json();
}

}  // namespace opguard
