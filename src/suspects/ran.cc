// Scopes are reached from names, as a collector of garbage reaches objects from roots.
//
//   roots      every module's body, and each function in which an operator ran
//   names      main() in the module, get_lr in main's body: both functions have run
//   never      def never(it): nobody names it, so its lines did not run
//
// The log goes before names: where operators of the lines are known, whether one ran is the answer.
//
// Counterexample: `from m import f` names f and calls nothing. `from m import f as g` is followed,
// since g's calls have no name that leads to f.
//
// The cost: once over the items of each scope that is reached, and over the events of each process.
#include "suspects/ran.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>

namespace opguard {
namespace {

struct ScopeRef {
  uint32_t file, scope;
};

// A base that none of the sources defines may call any method.
bool has_outside_base(const Scope& klass, const std::unordered_set<std::string_view>& classes) {
  return std::any_of(klass.bases.begin(), klass.bases.end(), [&](const std::string& base) {
    return base != "object" && !classes.contains(base);
  });
}

// These run without being named: `__init__`, `__len__`.
bool is_special(std::string_view name) { return name.starts_with("__") && name.ends_with("__"); }

}  // namespace

Ran::Ran(const Code& code, const Run& run, const EventRef& until) : code_(code) {
  places_.resize(code.files().size());
  for (const CodeFile& file : code.files()) scopes_.emplace_back(file.scopes.size(), false);
  read_events(code, run, until);
  read_calls(code, run, until);
  follow_names();
}

std::vector<const FunctionCall*> calls_to(const Run& run, const EventRef& event) {
  std::vector<const FunctionCall*> found;
  if (event.process < 0) return found;
  const ProcessLog& log = run.processes[event.process];
  const auto at = log.locations.find(log.text(log.events[event.event].boundary));
  if (at == log.locations.end()) return found;
  std::set<FunctionName> met = {caller(at->second)};
  std::vector<FunctionName> work = {caller(at->second)};
  for (size_t i = 0; i < work.size(); ++i)
    for (const FunctionCall& call : run.calls.all)
      if (call.callee == work[i]) {
        found.push_back(&call);
        if (met.insert(caller(call.at)).second) work.push_back(caller(call.at));
      }
  return found;
}

// A call has begun before what runs in it, and is no event of its own until it ends.
void Ran::read_calls(const Code& code, const Run& run, const EventRef& until) {
  for (const FunctionCall* call : calls_to(run, until))
    if (const auto file = code.find(call->at.path))
      places_[*file].push_back(
          {{call->at.line, std::max(call->at.line, call->at.end_line)}, until.event + 1});
}

void Ran::read_events(const Code& code, const Run& run, const EventRef& until) {
  if (until.process < 0) return;
  const ProcessLog& own = run.processes[until.process];
  const Event limit = own.events[until.event];
  for (size_t p = 0; p < run.processes.size(); ++p) {
    const ProcessLog& log = run.processes[p];
    std::unordered_map<uint32_t, uint64_t> last;  // by boundary
    for (uint32_t i = 0; i < log.events.size(); ++i) {
      const Event event = log.events[i];
      // One around the limit has begun.
      const bool before = &log == &own ? i <= until.event || (event.begin <= until.event &&
                                                              event.thread == limit.thread)
                                       : event.step <= limit.step;
      // Numbers of another process's events are not compared: it ran, and that is all.
      if (before) last[event.boundary] = &log == &own ? i + 1 : 1;
    }
    std::unordered_map<std::string_view, uint64_t> by_name;
    for (const auto& [boundary, at] : last) by_name[log.text(boundary)] = at;
    for (const auto& [boundary, location] : log.locations) {
      const auto file = code.find(location.path);
      if (!file) continue;
      const auto at = by_name.find(boundary);
      const LineSpan lines{location.line, std::max(location.line, location.end_line)};
      places_[*file].push_back({lines, at == by_name.end() ? 0 : at->second});
    }
  }
}

void Ran::follow_names() {
  const std::vector<CodeFile>& files = code_.files();
  std::unordered_map<std::string_view, std::vector<ScopeRef>> named;
  std::unordered_set<std::string_view> classes;
  for (uint32_t f = 0; f < files.size(); ++f)
    for (uint32_t s = 1; s < files[f].scopes.size(); ++s) {
      named[files[f].scopes[s].name].push_back({f, s});
      if (files[f].scopes[s].kind == Scope::Kind::klass) classes.insert(files[f].scopes[s].name);
    }
  std::vector<ScopeRef> work;
  auto reach = [&](uint32_t f, uint32_t s) {
    if (scopes_[f][s]) return;
    scopes_[f][s] = true;
    work.push_back({f, s});
  };
  // A class body runs where it stands.
  auto enter = [&](const ScopeRef& at) {
    const CodeFile& file = files[at.file];
    for (uint32_t s = 1; s < file.scopes.size(); ++s)
      if (file.scopes[s].parent == at.scope && file.scopes[s].kind == Scope::Kind::klass)
        reach(at.file, s);
  };
  // To name a class is to make one. Of its methods those run that Python calls, or all where a base
  // from elsewhere may call any: nn.Module calls `forward`.
  auto reach_class = [&](const ScopeRef& at) {
    const CodeFile& file = files[at.file];
    const bool outside = has_outside_base(file.scopes[at.scope], classes);
    for (uint32_t s = at.scope + 1; s < file.scopes.size(); ++s)
      if (file.scopes[s].parent == at.scope && file.scopes[s].kind == Scope::Kind::function &&
          (outside || is_special(file.scopes[s].name)))
        reach(at.file, s);
  };
  for (uint32_t f = 0; f < files.size(); ++f) {
    if (!files[f].tree) continue;
    reach(f, 0);
    for (const Place& place : places_[f])
      if (place.last > 0)
        for (uint32_t s = files[f].scope_at(place.lines.first); s != 0;
             s = files[f].scopes[s].parent)
          reach(f, s);
  }
  while (!work.empty()) {
    const ScopeRef at = work.back();
    work.pop_back();
    const CodeFile& file = files[at.file];
    enter(at);
    const std::vector<TreeItem>& items = file.tree->items();
    const uint32_t from = file.scopes[at.scope].item;
    for (uint32_t i = from; i < items[from].after; ++i) {
      // To import a function is not to call it. Under another name, it is taken to be called.
      const bool import = items[i].kind == Kind::import_from_statement ||
                          (items[i].kind == Kind::other && items[i].named &&
                           std::string_view(file.node(i).type()) == "import_statement");
      if (import && file.text(i).find(" as ") == std::string_view::npos) {
        i = items[i].after - 1;
        continue;
      }
      if (items[i].kind != Kind::identifier || file.scope_of[i] != at.scope) continue;
      // `def get_lr` does not call it.
      const Node above = file.node(items[i].parent);
      if ((above.kind() == Kind::function_definition || above.kind() == Kind::class_definition) &&
          above.field(Field::name) == file.node(i))
        continue;
      // By the last name alone: of two functions `step` both are reached.
      const auto known = named.find(file.text(i));
      if (known == named.end()) continue;
      for (const ScopeRef& target : known->second) {
        if (files[target.file].scopes[target.scope].kind == Scope::Kind::klass)
          reach_class(target);
        else
          reach(target.file, target.scope);
      }
    }
  }
}

// Whether an operator ran in the branch around these lines; `known`: the log has operators there.
bool Ran::block_ran(uint32_t file, const LineSpan& lines, bool& known) const {
  const CodeFile& code = code_.files()[file];
  const std::vector<TreeItem>& items = code.tree->items();
  uint32_t block = 0;  // the innermost that holds the lines, of a statement that may not run
  for (uint32_t i = 0; i < items.size(); ++i)
    if (items[i].kind == Kind::block) {
      const LineSpan at = code.lines(i);
      const Kind owner = items[items[i].parent].kind;
      if (at.first <= lines.first && lines.last <= at.last && owner != Kind::function_definition &&
          owner != Kind::class_definition)
        block = i;
    }
  if (block == 0) return true;
  const LineSpan at = code.lines(block);
  bool ran = false;
  for (const Place& place : places_[file])
    if (place.lines.meets(at)) {
      known = true;
      ran |= place.last > 0;
    }
  return ran;
}

bool Ran::lines(uint32_t file, const LineSpan& lines) const {
  const CodeFile& code = code_.files()[file];
  if (lines.empty() || !code.tree) return false;
  bool known = false, ran = false;
  for (const Place& place : places_[file])
    if (place.lines.meets(lines)) {
      known = true;
      ran |= place.last > 0;
    }
  // An operator in the lines itself decides, and then one in the branch around them. Only then
  // whether the scope ran.
  if (known) return ran;
  if (const bool in_block = block_ran(file, lines, known); known) return in_block;
  for (uint32_t line = lines.first; line <= lines.last; ++line)
    if (scopes_[file][code.scope_at(line)]) return true;
  return false;
}

uint64_t Ran::last_event(uint32_t file, const LineSpan& lines) const {
  uint64_t last = 0;
  for (const Place& place : places_[file])
    if (place.lines.meets(lines)) last = std::max(last, place.last);
  return last;
}

}  // namespace opguard
