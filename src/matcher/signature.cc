// How the tags of a site are made, and what each weighs.
//
//   1.5     the block it stands in
//   1       name, callee, receiver; each argument, each assigned name, each neighbour
//   0.5     form, keyword, first name of the receiver, number of arguments, each header of the
//           blocks around it, each operator directly inside it
//   0.25    template, kind of an argument, scope, file
//
// Counterexample: a file's path. A file that moved to another folder would change every site in it:
// the stem alone stands there, weakly.
#include "matcher/signature.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <tuple>

#include "matcher/match.h"
#include "matcher/operator_names.h"

namespace opguard {
namespace {

// Weights, relative to a site's name. What a statement computes and from what weighs most; where it
// stands is evidence only while it stays there.
constexpr double kName = 1, kForm = 0.5, kCallee = 1, kReceiver = 1, kRoot = 0.5, kTemplate = 0.25;
constexpr double kArgument = 1, kKeyword = 0.5, kKind = 0.25, kCount = 0.5, kTarget = 1;
constexpr double kScope = 0.25, kFile = 0.25, kNeighbour = 1, kBlock = 1.5, kHeader = 0.5;
constexpr double kHolds = 0.5;
constexpr size_t kMostHeld = 4;

// The same tag twice (f(x, x)) is two features: the second is "argument:name:x#2".
class TagList {
 public:
  void add(std::string name, double weight) {
    size_t count = 1;
    for (const Tag& tag : tags_) {
      const std::string& known = tag.name;
      bool same = known.compare(0, name.size(), name) == 0 &&
                  (known.size() == name.size() || known[name.size()] == '#');
      if (same) ++count;
    }
    if (count > 1) name += "#" + std::to_string(count);
    tags_.push_back({std::move(name), weight});
  }
  std::vector<Tag> take() { return std::move(tags_); }

 private:
  std::vector<Tag> tags_;
};

// "block" of "models/block.py".
std::string file_stem(const std::string& file) {
  size_t slash = file.rfind('/');
  std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  return name.substr(0, name.find('.'));
}

// Order-free: a keyword moved or a positional argument named keeps most of its tags.
void add_argument(TagList& tags, std::string shape) {
  constexpr std::string_view kKeywordPrefix = "keyword:";
  if (shape.compare(0, kKeywordPrefix.size(), kKeywordPrefix) == 0) {
    size_t equals = shape.find('=');
    tags.add(shape.substr(0, equals), kKeyword);
    if (equals == std::string::npos) return;
    shape.erase(0, equals + 1);
  }
  tags.add("argument:" + shape, kArgument);
  tags.add("kind:" + shape.substr(0, shape.find(':')), kKind);
}

// "x" of the receivers "x", "x.a" and "x.f(y)[0]": what is left of a receiver that an operator was
// put behind.
std::string_view root_of(std::string_view receiver) {
  size_t end = 0;
  while (end < receiver.size() &&
         (std::isalnum(static_cast<unsigned char>(receiver[end])) || receiver[end] == '_'))
    ++end;
  return receiver.substr(0, end);
}

// The callee without its receiver, which is a tag of its own; a module's name stays.
std::string callee_tag(const Site& site) {
  std::string callee = full_callee(site);
  if (site.form != Form::call || site.receiver.empty() || is_library_name(callee)) return callee;
  size_t dot = callee.rfind('.');
  return dot == std::string::npos ? callee : callee.substr(dot);
}

}  // namespace

bool is_place_tag(const std::string& name) {
  for (std::string_view prefix :
       {"scope:", "file:", "previous:", "next:", "inside:", "target:", "block:", "header:"})
    if (name.compare(0, prefix.size(), prefix) == 0) return true;
  return false;
}

std::vector<ScopeSites> group_by_scope(const std::vector<const Site*>& sites) {
  using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<Key, uint32_t> index;
  std::vector<ScopeSites> scopes;
  for (uint32_t i = 0; i < sites.size(); ++i) {
    const Site& s = *sites[i];
    auto [found, fresh] =
        index.try_emplace(Key{s.package, s.file, s.scope}, static_cast<uint32_t>(scopes.size()));
    if (fresh) scopes.push_back({s.package, s.file, s.scope, {}});
    scopes[found->second].sites.push_back(i);
  }
  for (ScopeSites& scope : scopes)
    std::stable_sort(scope.sites.begin(), scope.sites.end(),
                     [&](uint32_t a, uint32_t b) { return sites[a]->order < sites[b]->order; });
  return scopes;
}

Signatures::Signatures(std::vector<const Site*> sites, const TemplateLibrary& templates)
    : sites_(std::move(sites)),
      templates_(templates),
      scopes_(group_by_scope(sites_)),
      scope_of_(sites_.size()),
      rank_of_(sites_.size()),
      enclosing_(sites_.size(), -1) {
  for (uint32_t k = 0; k < scopes_.size(); ++k) {
    std::vector<uint32_t> by_start = scopes_[k].sites;
    for (uint32_t rank = 0; rank < by_start.size(); ++rank) {
      scope_of_[by_start[rank]] = k;
      rank_of_[by_start[rank]] = rank;
    }
    // Outer before inner; the stack holds the calls that are open.
    std::stable_sort(by_start.begin(), by_start.end(), [&](uint32_t a, uint32_t b) {
      const Site &x = *sites_[a], &y = *sites_[b];
      return x.start != y.start ? x.start < y.start : x.end > y.end;
    });
    std::vector<uint32_t> open;
    for (uint32_t i : by_start) {
      while (!open.empty() && sites_[open.back()]->end < sites_[i]->end) open.pop_back();
      if (!open.empty()) enclosing_[i] = open.back();
      if (sites_[i]->form == Form::call) open.push_back(i);
    }
  }
}

// Cached by what a template looks at: form, callee, and of a method the receiver.
const std::string& Signatures::template_of(const Site& site) const {
  std::string key = std::string(form_name(site.form)) + " " + site.callee;
  if (!site.callee.empty() && site.callee.front() == '.') key += " " + site.receiver;
  auto [found, fresh] = template_cache_.try_emplace(std::move(key));
  if (fresh)
    if (const Template* t = templates_.accept(site)) found->second = t->name;
  return found->second;
}

std::vector<Tag> Signatures::tags(size_t i) const {
  const Site& site = *sites_[i];
  TagList tags;
  tags.add("name:" + operator_name(site), kName);
  tags.add(std::string("form:") + form_name(site.form), kForm);
  tags.add("callee:" + callee_tag(site), kCallee);
  if (!site.receiver.empty()) tags.add("receiver:" + site.receiver, kReceiver);
  if (std::string_view root = root_of(site.receiver); !root.empty())
    tags.add("root:" + std::string(root), kRoot);
  if (const std::string& t = template_of(site); !t.empty()) tags.add("template:" + t, kTemplate);
  tags.add("arguments:" + std::to_string(site.arguments.size()), kCount);
  for (const std::string& shape : site.arguments) add_argument(tags, shape);
  for (const std::string& target : site.targets) tags.add("target:" + target, kTarget);
  tags.add("scope:" + site.scope, kScope);
  if (size_t dot = site.scope.rfind('.'); dot != std::string::npos)
    tags.add("scope:" + site.scope.substr(dot + 1), kScope);
  tags.add("file:" + file_stem(site.file), kFile);

  // A block put around a run of statements leaves the headers of the others.
  std::string_view block = site.block.empty() ? std::string_view("-") : site.block;
  tags.add("block:" + std::string(block), kBlock);
  for (size_t from = 0; from <= block.size();) {
    size_t to = std::min(block.find("; ", from), block.size());
    tags.add("header:" + std::string(block.substr(from, to - from)), kHeader);
    from = to + 2;
  }

  const std::vector<uint32_t>& row = scopes_[scope_of_[i]].sites;
  uint32_t rank = rank_of_[i];
  auto name_at = [&](int64_t at) {
    bool inside = at >= 0 && at < static_cast<int64_t>(row.size());
    return inside ? operator_name(*sites_[row[static_cast<size_t>(at)]]) : std::string("-");
  };
  tags.add("previous:" + name_at(int64_t{rank} - 1), kNeighbour);
  tags.add("next:" + name_at(int64_t{rank} + 1), kNeighbour);
  // Operators directly inside: an argument's shape tells only its last one. Evaluated before it, so
  // they stand before it in the scope, the last first.
  uint32_t behind = site.end;
  for (size_t k = rank, held = 0; k-- > 0 && held < kMostHeld;) {
    const Site& inner = *sites_[row[k]];
    // Evaluated before it and not inside it: nothing further back is inside either.
    if (inner.start < site.start || inner.end > site.end) break;
    // Inside one that has been told already, or the site's own expression in another form.
    if (inner.end > behind || (inner.start == site.start && inner.end == site.end)) continue;
    behind = inner.start;
    std::string body = inner.receiver + " " + callee_tag(inner);
    for (const std::string& argument : inner.arguments) body += " " + argument;
    tags.add("holds:" + body, kHolds);
    ++held;
  }
  if (enclosing_[i] >= 0)
    tags.add("inside:" + operator_name(*sites_[static_cast<size_t>(enclosing_[i])]), kNeighbour);
  return tags.take();
}

std::vector<std::vector<Tag>> signatures(const std::vector<Site>& sites,
                                         const TemplateLibrary& templates) {
  std::vector<const Site*> pointers;
  for (const Site& site : sites) pointers.push_back(&site);
  Signatures all(std::move(pointers), templates);
  std::vector<std::vector<Tag>> result;
  result.reserve(sites.size());
  for (size_t i = 0; i < sites.size(); ++i) result.push_back(all.tags(i));
  return result;
}

}  // namespace opguard
