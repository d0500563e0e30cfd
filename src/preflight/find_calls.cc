// Calls between functions of the user's, each expression once, with what the judgement looks up of
// both.
//
//   trace      rope.py rotate <- attention.py 30:11 CALL, a million times      one Found
//   facts      rotate(q, cos, sin=None); `rotate(q, c, sin=s)`                 read from both files
//   hashes     of every expression of both functions                         "has b this one too?"
//
// A call whose place fits several sites, or none, is left out. Counterexample: to take the first of
// several. The arguments of another call would be held against each other.
//
// The cost: a use is attributed once more; the files of callers and callees are parsed again, side
// by side.
#include "preflight/find_calls.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "parser/functions.h"
#include "preflight/attribute.h"
#include "support/parallel.h"
#include "support/qualified_name.h"

namespace opguard {
namespace {

std::string text_of(const SourceFile& file, const Site& site) {
  return expression_line(std::string_view(file.text).substr(site.start, site.end - site.start));
}

FunctionName function_of(const Site& site) { return {site.package, site.file, site.scope}; }

struct Found {
  const SourceFile* callee;
  std::string scope;  // of the callee
  const SourceFile* caller;
  uint32_t site;
};

std::vector<Found> attribute_calls(const Trace& trace, const SourceSet& sources,
                                   const std::vector<Site>& sites) {
  std::map<std::string_view, const SourceFile*> by_path;
  for (const SourceFile& file : sources.files) by_path[file.path] = &file;
  const Attributor attributor(sources, sites);
  std::set<std::tuple<const SourceFile*, std::string, uint32_t>> met;
  std::vector<Found> found;
  for (const TracedCall& call : trace.calls) {
    const auto file = by_path.find(call.path);
    if (file == by_path.end()) continue;
    const Attribution where = attributor.attribute(call.caller);
    if (where.sites.size() != 1 || !where.file) continue;
    const Site& site = sites[where.sites.front()];
    const std::string scope = scope_of(call.scope);
    if (where.file == file->second && site.scope == scope) continue;  // its own comprehension
    if (met.emplace(file->second, scope, where.sites.front()).second)
      found.push_back({file->second, scope, where.file, where.sites.front()});
  }
  return found;
}

}  // namespace

Location location_of(const Site& site, const SourceFile& file) {
  return {site.package,    site.file,           file.path,   site.line,  site.column, site.end_line,
          site.end_column, text_of(file, site), site.callee, site.scope, site.block};
}

std::set<uint32_t> drawing_sites(const Trace& trace, const SourceSet& sources,
                                 const std::vector<Site>& sites) {
  const Attributor attributor(sources, sites);
  std::set<uint32_t> found;
  for (const TracedUse& use : trace.uses)
    if (use.draws)
      for (uint32_t site : attributor.attribute(use).sites) found.insert(site);
  return found;
}

Calls find_calls(const Trace& trace, const SourceSet& sources, const std::vector<Site>& sites) {
  const std::vector<Found> found = attribute_calls(trace, sources, sites);
  std::map<const SourceFile*, std::set<Span>> wanted;
  for (const Found& call : found) {
    wanted[call.callee];
    wanted[call.caller].emplace(sites[call.site].start, sites[call.site].end);
  }
  std::vector<const SourceFile*> files;
  for (const auto& [file, spans] : wanted) files.push_back(file);
  std::vector<FileFacts> read(files.size());
  parallel_for(files.size(),
               [&](size_t i) { read[i] = read_facts(*files[i], wanted.at(files[i])); });
  std::map<const SourceFile*, const FileFacts*> facts;
  for (size_t i = 0; i < files.size(); ++i) facts[files[i]] = &read[i];

  Calls calls;
  std::map<std::pair<std::string, std::string>, const SourceFile*> by_name;
  for (const SourceFile& file : sources.files) by_name[{file.package, file.name}] = &file;
  for (const Found& call : found) {
    // An entry without expressions: functions of which all expressions are to be collected below.
    calls.expressions[function_of(sites[call.site])];
    calls.expressions[{call.callee->package, call.callee->name, call.scope}];
  }
  const Attributor attributor(sources, sites);
  for (const TracedUse& use : trace.uses)
    for (uint32_t site : attributor.attribute(use).sites)
      calls.expressions[function_of(sites[site])];
  std::set<FunctionName> defined;
  for (const Site& site : sites) defined.insert(function_of(site));
  for (const FunctionName& function : defined) calls.defined.insert(function_hash(function));
  for (const Site& site : sites)
    if (auto known = calls.expressions.find(function_of(site)); known != calls.expressions.end())
      if (auto file = by_name.find({site.package, site.file}); file != by_name.end()) {
        known->second.insert(expression_hash(text_of(*file->second, site)));
        if (site.form == Form::call && !site.callee.empty())
          known->second.insert(called_hash(site.callee));
      }
  for (const Found& call : found) {
    const Site& site = sites[call.site];
    FunctionCall& out = calls.all.emplace_back();
    out.callee = {call.callee->package, call.callee->name, call.scope};
    out.at = location_of(site, *call.caller);
    const auto& arguments = facts.at(call.caller)->arguments;
    if (auto given = arguments.find({site.start, site.end}); given != arguments.end())
      for (const Argument& argument : given->second)
        out.arguments.push_back({argument.name, argument.text});
    for (const Function& function : facts.at(call.callee)->functions) {
      if (function.scope != call.scope) continue;
      std::vector<CalledParameter>& parameters = calls.parameters[out.callee];
      // A scope that is defined twice (in `if` and `else`) has the parameters of its last
      // definition.
      parameters.clear();
      for (const FunctionParameter& parameter : function.parameters)
        parameters.push_back({parameter.name, parameter.fallback, parameter.rebound});
    }
  }
  return calls;
}

}  // namespace opguard
