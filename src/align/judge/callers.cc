// A call of one run is held against the calls of the other by functions, texts and contexts.
//
//   into_[side]    by function: all calls of it that the preflight saw
//   other_[side]   this run's function -> the other's, by a boundary that stands in both
//                  a  Attention.forward      b  Attention.forward_new     share "model.matmul:77ab"
//
// Three questions, in name_call:
//
//   only_here         one run alone has the operator: which call leads there in that run only?
//   other_arguments   both have it, and it is given another thing: which argument has another text?
//   other_context     both have it: is a call on the way inside another `with`?
//
// All go outward, call by call, at most 16 times. An argument that hands on a parameter of the
// caller's (`rotate(q, cos)`) is followed to what that was given.
//
// Counterexample: two answers. Then the operator keeps its name, whichever of them is right.
#include "align/judge/callers.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace opguard {
namespace {

constexpr int kMostCalls = 16;  // followed outward

bool is_word(char c) {
  const auto u = static_cast<unsigned char>(c);
  return std::isalnum(u) || c == '_' || u >= 0x80;
}

// Names in an expression that are no attributes: of `x1 * self.cos(q)` x1, self and q.
std::set<std::string> names_in(std::string_view text) {
  std::set<std::string> names;
  for (size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (i == 0 || text[i - 1] != '.') names.emplace(text.substr(i, end - i));
    i = end;
  }
  return names;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_word) &&
         !std::isdigit(static_cast<unsigned char>(text[0]));
}

// Headers of a site's blocks that enter a context: `with torch.no_grad()`.
std::vector<std::string> contexts(const std::string& block) {
  std::vector<std::string> found;
  for (size_t at = 0; at < block.size();) {
    const size_t end = std::min(block.find("; ", at), block.size());
    const std::string header = block.substr(at, end - at);
    if (header.starts_with("with ") || header.starts_with("async with ")) found.push_back(header);
    at = end + 2;
  }
  return found;
}

using CallList = std::vector<const FunctionCall*>;

// One call, or the same one in both runs (nullptr: that run has none).
struct OtherCall {
  const FunctionCall* call[2] = {nullptr, nullptr};
  Reason why;
  bool operator==(const OtherCall& other) const {
    return call[0] == other.call[0] && call[1] == other.call[1];
  }
};

class Callers {
 public:
  Callers(const Run& a, const Run& b) : runs_{&a, &b} {
    for (int side : {0, 1}) {
      for (const FunctionCall& call : runs_[side]->calls.all)
        into_[side][call.callee].push_back(&call);
    }
    for (const ProcessLog& log : a.processes)
      for (const auto& [boundary, at] : log.locations)
        for (const ProcessLog& other : b.processes)
          if (auto same = other.locations.find(boundary); same != other.locations.end()) {
            other_[0].try_emplace(caller(at), caller(same->second));
            other_[1].try_emplace(caller(same->second), caller(at));
            break;
          }
  }

  // The call that only this side makes, of those that led to `function`.
  const FunctionCall* only_here(int side, FunctionName function) const {
    const FunctionCall* found = nullptr;
    // A function that this program alone has: its lines say more than who calls it.
    if (!in_both(side, function)) return nullptr;
    // The other run comes there as well, perhaps through another function.
    if (into(side, function).size() <= into(1 - side, in_other(side, function)).size())
      return nullptr;
    for (int hops = 0; hops < kMostCalls; ++hops) {
      const FunctionCall* call = extra(side, function);
      if (!call) return nullptr;
      found = call;
      function = caller(call->at);
      if (!in_both(side, function)) return found;
      // Where no operator ran below a call, the preflight did not see it. Its text tells.
      const auto& known = runs_[1 - side]->calls.expressions;
      const auto there = known.find(in_other(side, function));
      if (there == known.end()) continue;
      const bool unseen =
          from(1 - side, in_other(side, call->callee), in_other(side, function)).empty();
      const auto& texts = there->second;
      return texts.contains(expression_hash(call->at.text)) ||
                     (unseen && texts.contains(called_hash(call->at.callee)))
                 ? nullptr
                 : found;
    }
    return nullptr;
  }

  // As the other run calls this function: by a boundary they share, else by its name.
  FunctionName in_other(int side, const FunctionName& function) const {
    auto at = other_[side].find(function);
    return at == other_[side].end() ? function : at->second;
  }

  // The other program has this function too, whether it ran there or not. Logs that do not tell
  // count as such.
  bool in_both(int side, const FunctionName& function) const {
    const std::set<uint32_t>& own = runs_[side]->calls.defined;
    const std::set<uint32_t>& other = runs_[1 - side]->calls.defined;
    return other.empty() || !own.contains(function_hash(function)) ||
           other.contains(function_hash(in_other(side, function)));
  }

  // A call that gives another text for one of these parameters.
  std::vector<OtherCall> other_arguments(const FunctionName& function,
                                         const std::set<std::string>& names, int hops = 0) const {
    std::vector<OtherCall> found;
    if (hops == kMostCalls) return found;
    const FunctionName names_of[2] = {function, in_other(0, function)};
    std::map<std::pair<const FunctionCall*, const FunctionCall*>, std::set<std::string>> further;
    for (const auto& [x, y] : calls_of_both(function))
      for (const std::string& name : names) {
        const FunctionCall* calls[2] = {x, y};
        std::optional<std::string> given[2];
        for (int side : {0, 1}) given[side] = argument(side, *calls[side], names_of[side], name);
        if (!given[0] || !given[1]) continue;
        if (*given[0] != *given[1])
          add(found,
              {{x, y}, {.kind = ReasonKind::call_argument, .names = {name, *given[0], *given[1]}}});
        else if (is_name(*given[0]))
          further[{x, y}].insert(*given[0]);
      }
    if (!found.empty()) return found;
    for (const auto& [calls, passed] : further)
      for (const OtherCall& outer : other_arguments(caller(calls.first->at), passed, hops + 1))
        add(found, outer);
    return found;
  }

  // A call inside another context on the way here.
  std::vector<OtherCall> other_context(const FunctionName& function, int hops = 0) const {
    std::vector<OtherCall> found;
    if (hops == kMostCalls) return found;
    const auto calls = calls_of_both(function);
    for (const auto& [x, y] : calls) {
      const auto in_a = contexts(x->at.block), in_b = contexts(y->at.block);
      if (in_a == in_b) continue;
      const bool more = in_b.size() > in_a.size();
      const auto& longer = more ? in_b : in_a;
      const auto& shorter = more ? in_a : in_b;
      std::string header = longer.empty() ? "" : longer.back();
      for (const std::string& each : longer)
        if (std::find(shorter.begin(), shorter.end(), each) == shorter.end()) header = each;
      add(found,
          {{x, y}, {.kind = ReasonKind::call_context, .side = more, .names = {std::move(header)}}});
    }
    if (!found.empty()) return found;
    for (const auto& [x, y] : calls)
      for (const OtherCall& outer : other_context(caller(x->at), hops + 1)) add(found, outer);
    return found;
  }

 private:
  static void add(std::vector<OtherCall>& found, OtherCall more) {
    if (std::find(found.begin(), found.end(), more) == found.end())
      found.push_back(std::move(more));
  }

  const CallList& into(int side, const FunctionName& function) const {
    static const CallList kNothing;
    auto at = into_[side].find(function);
    return at == into_[side].end() ? kNothing : at->second;
  }

  CallList from(int side, const FunctionName& function, const FunctionName& from) const {
    CallList calls;
    for (const FunctionCall* call : into(side, function))
      if (caller(call->at) == from) calls.push_back(call);
    return calls;
  }

  // The one call into `function` more than the other run has. Where it has as many, or where it
  // cannot be told which it is: nullptr.
  const FunctionCall* extra(int side, const FunctionName& function) const {
    const FunctionCall* found = nullptr;
    std::set<FunctionName> callers;
    for (const FunctionCall* call : into(side, function)) callers.insert(caller(call->at));
    for (const FunctionName& name : callers) {
      const CallList here = from(side, function, name);
      const CallList there = from(1 - side, in_other(side, function), in_other(side, name));
      if (here.size() <= there.size()) continue;
      std::multiset<std::string_view> texts;
      for (const FunctionCall* call : there) texts.insert(call->at.text);
      for (const FunctionCall* call : here) {
        if (auto same = texts.find(call->at.text); same != texts.end()) {
          texts.erase(same);
          continue;
        }
        if (found && (found->at.file != call->at.file || found->at.line != call->at.line))
          return nullptr;
        found = call;
      }
    }
    return found;
  }

  // Calls of both runs, those of one caller in the order in which they first ran.
  std::vector<std::pair<const FunctionCall*, const FunctionCall*>> calls_of_both(
      const FunctionName& function) const {
    std::vector<std::pair<const FunctionCall*, const FunctionCall*>> both;
    std::set<FunctionName> callers;
    for (const FunctionCall* call : into(0, function)) callers.insert(caller(call->at));
    for (const FunctionName& name : callers) {
      const CallList a = from(0, function, name);
      const CallList b = from(1, in_other(0, function), in_other(0, name));
      if (a.size() != b.size()) continue;
      for (size_t i = 0; i < a.size(); ++i) both.emplace_back(a[i], b[i]);
    }
    return both;
  }

  // What a call gives for a parameter that the function keeps as it was given; its default's text
  // where it gives nothing.
  std::optional<std::string> argument(int side, const FunctionCall& call,
                                      const FunctionName& function, const std::string& name) const {
    const auto& all = runs_[side]->calls.parameters;
    const auto known = all.find(function);
    if (known == all.end()) return std::nullopt;
    const std::vector<CalledParameter>& parameters = known->second;
    auto at = std::find_if(parameters.begin(), parameters.end(),
                           [&](const CalledParameter& p) { return p.name == name; });
    if (at == parameters.end() || at->rebound) return std::nullopt;
    // A method's own object is given by what stands before the dot.
    const bool method = parameters[0].name == "self" || parameters[0].name == "cls";
    size_t position = static_cast<size_t>(at - parameters.begin());
    if (method && position == 0) return std::nullopt;
    position -= method;
    size_t index = 0;
    for (const CallArgument& given : call.arguments) {
      if (given.name == name) return given.text;
      if (given.name == "*" || given.name == "**") return std::nullopt;
      if (given.name.empty() && index++ == position) return given.text;
    }
    return at->fallback;
  }

  const Run* runs_[2];
  std::map<FunctionName, CallList> into_[2];
  std::map<FunctionName, FunctionName> other_[2];
};

const Location* location(const Run& run, const EventRef& ref) {
  if (ref.process < 0) return nullptr;
  const ProcessLog& log = run.processes[ref.process];
  const auto at = log.locations.find(log.text(log.events[ref.event].boundary));
  return at == log.locations.end() || at->second.function.empty() ? nullptr : &at->second;
}

// Of what only one run did, or each in its own way.
std::optional<OtherCall> call_of_one_run(const Callers& callers, const Location* (&at)[2]) {
  OtherCall found;
  for (int side : {0, 1})
    if (at[side]) found.call[side] = callers.only_here(side, caller(*at[side]));
  if (at[0] && at[1]) {
    if (!found.call[0] || !found.call[1]) return std::nullopt;
    if (callers.in_other(0, caller(found.call[0]->at)) != caller(found.call[1]->at))
      return std::nullopt;
    found.why = {ReasonKind::other_call};
    return found;
  }
  if (!found.call[0] && !found.call[1]) return std::nullopt;
  found.why = {.kind = ReasonKind::only_call, .side = found.call[0] ? 0 : 1};
  return found;
}

const std::string& boundary(const Run& run, const EventRef& ref) {
  const ProcessLog& log = run.processes[ref.process];
  return log.text(log.events[ref.event].boundary);
}

Pivot name_call(const Callers& callers, const Run& a, const Run& b, Pivot pivot) {
  const Location* at[2] = {location(a, pivot.a), location(b, pivot.b)};
  // An event of unknown place has no call to be known.
  if ((pivot.a.process >= 0 && !at[0]) || (pivot.b.process >= 0 && !at[1])) return pivot;
  std::vector<OtherCall> found;
  if (!at[0] || !at[1] || boundary(a, pivot.a) != boundary(b, pivot.b)) {
    if (auto call = call_of_one_run(callers, at)) found = {*call};
  } else if (contexts(at[0]->block) == contexts(at[1]->block)) {
    const bool other_value = pivot.kind == PivotKind::input || pivot.kind == PivotKind::scalar;
    if (other_value || pivot.kind == PivotKind::structure) {
      std::set<std::string> names = names_in(at[0]->text);
      const std::set<std::string> other = names_in(at[1]->text);
      std::erase_if(names, [&](const std::string& name) { return !other.contains(name); });
      found = callers.other_arguments(caller(*at[0]), names);
    }
    if (found.empty() && !other_value) found = callers.other_context(caller(*at[0]));
  }
  if (found.size() != 1) return pivot;
  for (int side : {0, 1})
    if (found[0].call[side]) pivot.call[side] = found[0].call[side]->at;
  pivot.why.push_back(found[0].why);
  return pivot;
}

}  // namespace

std::vector<Pivot> name_calls(const Run& a, const Run& b, std::vector<Pivot> candidates) {
  if (a.calls.all.empty() || b.calls.all.empty()) return candidates;
  const Callers callers(a, b);
  for (Pivot& pivot : candidates) pivot = name_call(callers, a, b, std::move(pivot));
  return candidates;
}

}  // namespace opguard
