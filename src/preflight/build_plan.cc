// From uses to boundaries, and from uses that found no site to what is said of them.
//
//   use                                            becomes
//   `softmax(x)`, 12 x aten::softmax               a boundary; 12 activities, attributed
//   another use of the same site                   the same boundary: counts are added
//   `x.size(0)`, aten::size alone                  nothing: no element is touched
//   `f"{x=}"`, below which something computes      unwrapped, with its reason; not attributed
//   `p.data = v`, no activity at all               a boundary, where p may be a tensor
//
// Coverage counts everything that computes, wherever it belongs. Counterexample: coverage of what
// was attributed. It would be 100 % by definition.
//
// The cost: each use is attributed once; signatures are made of the boundaries alone.
#include "preflight/build_plan.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "matcher/signature.h"
#include "matcher/taking_part.h"
#include "operators/operators.h"
#include "parser/classes.h"
#include "preflight/attribute.h"
#include "preflight/data_owner.h"
#include "preflight/ids.h"

namespace opguard {
namespace {

constexpr size_t kTextBytes = 120;
constexpr size_t kHashLetters = 4;  // a million per label; more where two would be the same

// The site's text on one line, cut before kTextBytes, never inside a UTF-8 character.
std::string one_line(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  if (out.size() <= kTextBytes) return out;
  size_t cut = kTextBytes - 3;
  while (cut > 0 && (static_cast<unsigned char>(out[cut]) & 0xc0) == 0x80) --cut;
  return out.substr(0, cut) + "...";
}

void add_counts(std::map<std::string, uint64_t>& into,
                const std::map<std::string, uint64_t>& from) {
  for (const auto& [name, count] : from) into[name] += count;
}

Boundary make_boundary(const Site& site, const SourceFile* file, const std::string& id) {
  Boundary b;
  b.id = id;
  b.site = site;
  if (file)
    b.text = one_line(std::string_view(file->text).substr(site.start, site.end - site.start));
  return b;
}

// The file of a site.
class Files {
 public:
  explicit Files(const SourceSet& sources) {
    for (const SourceFile& file : sources.files) files_[{file.package, file.name}] = &file;
  }
  const SourceFile* of(const Site& site) const {
    auto found = files_.find({site.package, site.file});
    return found == files_.end() ? nullptr : found->second;
  }

 private:
  std::map<std::pair<std::string_view, std::string_view>, const SourceFile*> files_;
};

// The sites that take part, and their signatures.
// `part` holds indices of `sites`, ascending; signatures count in `part`.
struct Signed {
  Signed(const std::vector<Site>& sites, const QuietKinds& kinds, const TemplateLibrary& templates)
      : part(taking_part(sites, kinds)), signatures(pointers(sites, part), templates) {}
  size_t index_of(uint32_t site) const {
    return static_cast<size_t>(std::lower_bound(part.begin(), part.end(), site) - part.begin());
  }
  static std::vector<const Site*> pointers(const std::vector<Site>& sites,
                                           const std::vector<uint32_t>& part) {
    std::vector<const Site*> result;
    for (uint32_t i : part) result.push_back(&sites[i]);
    return result;
  }
  std::vector<uint32_t> part;
  Signatures signatures;
};

void add_signature(Boundary& boundary, const Signed& all, uint32_t site) {
  size_t i = all.index_of(site);
  boundary.templ = all.signatures.template_name(i);
  boundary.tags = all.signatures.tags(i);
}

// All other sites of the scopes of `chosen` (by site index).
// What matching asks of a site, and no more: lines, operands and refusals of the context are not
// kept in a plan.
std::vector<Site> context_of(const std::vector<Site>& sites, const Signed& all,
                             const std::set<uint32_t>& chosen) {
  std::set<uint32_t> scopes;
  for (uint32_t i : chosen) scopes.insert(all.signatures.scope_of(all.index_of(i)));
  std::vector<const Site*> order;
  for (uint32_t k : scopes)
    for (uint32_t i : all.signatures.scopes()[k].sites)
      if (!chosen.count(all.part[i])) order.push_back(&sites[all.part[i]]);
  // Scopes stay whole: a nested function's sites lie between those of its parent.
  std::stable_sort(order.begin(), order.end(), [](const Site* a, const Site* b) {
    return std::tie(a->package, a->file, a->scope, a->order) <
           std::tie(b->package, b->file, b->scope, b->order);
  });
  std::vector<Site> context;
  for (const Site* site : order) {
    Site& s = context.emplace_back();
    s.package = site->package;
    s.file = site->file;
    s.scope = site->scope;
    s.order = site->order;
    s.start = site->start;
    s.end = site->end;
    s.form = site->form;
    s.callee = site->callee;
    s.receiver = site->receiver;
    s.arguments = site->arguments;
    s.targets = site->targets;
    s.block = site->block;
  }
  return context;
}

// Name of a file that was not read: relative to its root; never a path of this machine.
std::pair<std::string, std::string> name_of(const std::string& path,
                                            const std::vector<SourceRoot>& roots) {
  for (const SourceRoot& root : roots)
    if (path.compare(0, root.dir.size(), root.dir) == 0 && path.size() > root.dir.size() &&
        path[root.dir.size()] == '/' &&
        path.compare(root.dir.size() + 1, root.subdir.size(), root.subdir) == 0)
      return {root.package, path.substr(root.dir.size() + 1)};
  return {"", path.substr(path.rfind('/') + 1)};
}

// Unwrapped places, one a line and reason, the most active first.
class UnwrappedList {
 public:
  void add(const std::string& package, const std::string& file, uint32_t line,
           const std::string& what, const std::string& phase, uint64_t activities) {
    counts_[{package, file, line, what, phase}] += activities;
  }
  std::vector<Unwrapped> list() const {
    std::vector<Unwrapped> out;
    for (const auto& [key, activities] : counts_)
      out.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key),
                     std::get<4>(key), activities});
    std::stable_sort(out.begin(), out.end(), [](const Unwrapped& a, const Unwrapped& b) {
      return a.activities > b.activities;
    });
    return out;
  }

 private:
  std::map<std::tuple<std::string, std::string, uint32_t, std::string, std::string>, uint64_t>
      counts_;
};

// Marks, kernels and everything that is_interesting make a boundary; a use without is left out.
bool makes_boundary(const TracedUse& use) {
  if (!use.kernels.empty()) return true;
  for (const auto* names : {&use.activities, &use.backward})
    for (const auto& [name, count] : *names)
      if (is_interesting(name)) return true;
  return false;
}

// `h.detach()` computes nothing and keeps every value; every gradient behind it is gone. Elsewhere
// aten::detach is bookkeeping (nn.Parameter, state_dict).
bool leaves_graph(const TracedUse& use, const std::vector<Site>& sites, const Attribution& where) {
  auto called = [&](uint32_t i) { return sites[i].callee.ends_with(".detach"); };
  return use.activities.contains("aten::detach") && !where.sites.empty() &&
         std::all_of(where.sites.begin(), where.sites.end(), called);
}

// "opguard::" names what the tracer itself marks, as the end of a step: it dispatches no operator.
bool has_mark(const TracedUse& use) {
  for (const auto& [name, count] : use.activities)
    if (name.rfind("opguard::", 0) == 0) return !use.phases.empty();
  return false;
}

// Activities into a parameter's gradient, and those with no user source above them.
void add_sourceless(const Trace& trace, Plan& plan) {
  for (const auto& [name, count] : trace.accumulated) {
    PhaseCoverage& phase = plan.coverage["backward"];
    phase.activities += count;
    phase.attributed += count;
    phase.accumulated += count;
  }
  for (const auto& [phase, names] : trace.foreign_compute)
    for (const auto& [name, count] : names) {
      plan.coverage[phase].activities += count;
      plan.foreign.push_back({phase, name, count});
    }
  std::stable_sort(plan.foreign.begin(), plan.foreign.end(),
                   [](const Foreign& a, const Foreign& b) { return a.count > b.count; });
}

// How many of a use's kernels belong to training steps: not those of kImportPhase.
uint64_t step_kernels(const TracedUse& use) {
  uint64_t sum = 0;
  for (const auto& [phase, count] : use.kernel_phases)
    if (phase != kImportPhase) sum += count;
  return sum;
}

// The kernels of one use, below a boundary or not.
void add_kernels(const TracedUse& use, bool attributed, KernelCoverage& coverage) {
  uint64_t count = step_kernels(use);
  coverage.kernels += count;
  if (attributed)
    coverage.attributed += count;
  else if (count > 0)
    add_counts(coverage.rest, use.kernels);
}

KernelCoverage sourceless_kernels(const Trace& trace) {
  KernelCoverage coverage;
  for (const TracedDevice& device : trace.devices) {
    // Without the library's path and the reasons, which are of this machine.
    std::string source = device.type + ": " + device.source;
    source = source.substr(0, std::min(source.find(" ("), source.find(", /")));
    if (std::find(coverage.sources.begin(), coverage.sources.end(), source) ==
        coverage.sources.end())
      coverage.sources.push_back(source);
    coverage.dropped += device.dropped;
  }
  for (const auto& [name, count] : trace.accumulated_kernels) {
    coverage.kernels += count;
    coverage.attributed += count;
  }
  for (const auto& [phase, names] : trace.foreign_kernels) {
    if (phase == kImportPhase) continue;
    for (const auto& [name, count] : names) coverage.kernels += count;
    add_counts(coverage.rest, names);
  }
  return coverage;
}

// `p.data = v` and `p.grad = v` dispatch nothing: they are boundaries wherever their scope ran and
// p may be a tensor.
void add_data_writes(const std::vector<Site>& sites, const SourceSet& sources,
                     const std::vector<std::string>& ids,
                     std::map<uint32_t, Boundary>& boundaries) {
  using Scope = std::tuple<std::string_view, std::string_view, std::string_view>;
  auto scope_of = [](const Site& s) { return Scope(s.package, s.file, s.scope); };
  std::map<Scope, uint64_t> ran;  // the scope's latest first execution so far, in order of source
  // Written after the loop: a boundary that is added must not count as having run.
  std::vector<std::pair<uint32_t, uint64_t>> found;
  const Files files(sources);
  std::map<const SourceFile*, Classes> classes;  // read where a file has such a write
  for (const auto& [i, boundary] : boundaries) ran.try_emplace(scope_of(sites[i]), boundary.order);
  for (uint32_t i = 0; i < sites.size(); ++i) {
    const Site& site = sites[i];
    if (auto known = boundaries.find(i); known != boundaries.end()) {
      ran[scope_of(site)] = known->second.order;
      continue;
    }
    if (site.form != Form::write || !site.refusal.empty()) continue;
    std::string_view name = site.callee;
    if (!name.ends_with(".data=") && !name.ends_with(".grad=")) continue;
    if (const SourceFile* file = files.of(site)) {
      auto known = classes.find(file);
      if (known == classes.end()) known = classes.emplace(file, read_classes(*file)).first;
      if (!may_own_data(site, known->second)) continue;
    }
    if (auto scope = ran.find(scope_of(site)); scope != ran.end())
      found.emplace_back(i, scope->second);
  }
  for (const auto& [i, order] : found) {
    Boundary b = make_boundary(sites[i], files.of(sites[i]), ids[i]);
    b.order = order;
    boundaries.emplace(i, std::move(b));
  }
}

}  // namespace

bool is_interesting(const std::string& activity) {
  for (std::string_view prefix : {"prim::", "profiler::"})
    if (activity.compare(0, prefix.size(), prefix) == 0) return false;
  if (!activity.starts_with("aten::")) return true;
  const std::string_view name = aten_name(activity);
  return name != "detach" && !touches_no_element(name);
}

std::vector<std::string> boundary_ids(const std::vector<Site>& sites,
                                      const std::set<std::string>& taken) {
  std::vector<std::string> labels, letters;
  std::map<std::string, size_t> ordinals;
  for (const Site& site : sites) {
    std::string identity = identity_of(site);
    // Of sites that are alike in all but their place, the first, the second, ...
    size_t ordinal = ordinals[identity]++;
    labels.push_back(label_of(site));
    letters.push_back(hash_letters(identity + "\n" + std::to_string(ordinal)));
  }
  // Ids that would be the same all grow, so that none depends on which site comes first.
  std::vector<size_t> lengths(sites.size(), kHashLetters);
  std::vector<std::string> ids(sites.size());
  for (bool grew = true; grew;) {
    grew = false;
    std::map<std::string, size_t> uses;
    for (size_t i = 0; i < sites.size(); ++i) {
      ids[i] = labels[i] + ":" + letters[i].substr(0, lengths[i]);
      ++uses[ids[i]];
    }
    for (size_t i = 0; i < sites.size(); ++i)
      if ((uses[ids[i]] > 1 || taken.count(ids[i])) && lengths[i] < letters[i].size()) {
        ++lengths[i];
        grew = true;
      }
  }
  return ids;
}

Plan build_plan(const Trace& trace, const SourceSet& sources, const std::vector<Site>& sites,
                const TemplateLibrary& templates) {
  Plan plan;
  plan.python = trace.python;
  plan.torch = trace.torch;
  for (const SourceRoot& root : trace.roots)
    if (!root.package.empty()) plan.packages.push_back(root.package);

  Attributor attributor(sources, sites);
  std::vector<std::string> ids = boundary_ids(sites);
  std::map<uint32_t, Boundary> boundaries;  // by site index
  UnwrappedList unwrapped;
  add_sourceless(trace, plan);
  plan.devices = sourceless_kernels(trace);
  for (const TracedUse& use : trace.uses) {
    Attribution where = attributor.attribute(use);
    if (!makes_boundary(use) && !leaves_graph(use, sites, where)) continue;
    for (const auto& [phase, count] : use.compute) plan.coverage[phase].activities += count;
    add_kernels(use, !where.sites.empty(), plan.devices);
    if (where.sites.empty()) {
      auto [package, file] = where.file ? std::pair(where.file->package, where.file->name)
                                        : name_of(use.path, trace.roots);
      for (const auto& [phase, count] : use.compute)
        unwrapped.add(package, file, static_cast<uint32_t>(std::max(use.line, 0)), where.reason,
                      phase, count);
      // A mark that no probe can stand at is said too.
      if (use.compute.empty() && has_mark(use))
        unwrapped.add(package, file, static_cast<uint32_t>(std::max(use.line, 0)), where.reason,
                      use.phases.begin()->first, 0);
      continue;
    }
    for (const auto& [phase, count] : use.compute) plan.coverage[phase].attributed += count;
    for (uint32_t i : where.sites) {
      auto found = boundaries.find(i);
      if (found == boundaries.end()) {
        found = boundaries.emplace(i, make_boundary(sites[i], where.file, ids[i])).first;
        found->second.order = use.order;
      }
      Boundary& b = found->second;
      b.order = std::min(b.order, use.order);
      b.calls += use.calls;
      add_counts(b.activities, use.activities);
      add_counts(b.backward, use.backward);
      add_counts(b.phases, use.phases);
      add_counts(b.kernels, use.kernels);
      add_counts(b.transfers, use.transfers);
      for (const std::string& name : use.writes)
        if (std::find(b.writes.begin(), b.writes.end(), name) == b.writes.end())
          b.writes.push_back(name);
    }
  }
  add_data_writes(sites, sources, ids, boundaries);
  std::set<uint32_t> chosen;
  QuietKinds kinds;
  for (const auto& [site, boundary] : boundaries) kinds.add(boundary.site);
  Signed all(sites, kinds, templates);
  for (auto& [site, boundary] : boundaries) {
    chosen.insert(site);
    add_signature(boundary, all, site);
    plan.boundaries.push_back(std::move(boundary));
  }
  std::stable_sort(plan.boundaries.begin(), plan.boundaries.end(),
                   [](const Boundary& a, const Boundary& b) { return a.order < b.order; });
  plan.context = context_of(sites, all, chosen);
  plan.unwrapped = unwrapped.list();
  return plan;
}

Plan static_plan(const SourceSet& sources, const std::vector<Site>& sites,
                 const TemplateLibrary& templates, bool all_calls) {
  Plan plan;
  for (const SourceRoot& root : sources.roots)
    if (!root.package.empty()) plan.packages.push_back(root.package);
  const Files files(sources);
  Signed all(sites, {}, templates);
  std::vector<std::string> ids = boundary_ids(sites);
  std::set<uint32_t> chosen;
  UnwrappedList unwrapped;
  for (uint32_t i : all.part) {
    const Site& site = sites[i];
    bool wanted = (all_calls && site.form == Form::call) ||
                  (!all_calls && !all.signatures.template_name(all.index_of(i)).empty());
    if (!wanted) continue;
    // Of all calls also those that cannot carry a probe: they are followed, not wrapped.
    if (!site.refusal.empty() && !all_calls) {
      unwrapped.add(site.package, site.file, site.line, site.refusal, "", 0);
      continue;
    }
    plan.boundaries.push_back(make_boundary(site, files.of(site), ids[i]));
    add_signature(plan.boundaries.back(), all, i);
    plan.boundaries.back().order = plan.boundaries.size() - 1;  // source order: nothing ran
    chosen.insert(i);
  }
  plan.context = context_of(sites, all, chosen);
  plan.unwrapped = unwrapped.list();
  return plan;
}

}  // namespace opguard
