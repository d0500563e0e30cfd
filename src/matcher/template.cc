#include "matcher/template.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "matcher/operator_names.h"
#include "plan/json_text.h"
#include "support/nearest.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;
using Kind = JsonValue::Kind;

constexpr int kTemplateVersion = 1;

// How closely a pattern names a callee; 0: not at all. An exact name beats a method of any
// receiver, which beats a pattern with a star; of two of a kind the longer one wins. A star alone
// is the product in operators and anything in loops and subscripts; no template can accept every
// call.
size_t closeness(std::string_view pattern, std::string_view callee, Form form) {
  constexpr size_t kExact = 1 << 20, kMethod = 1 << 10;
  if (pattern == callee) return kExact + pattern.size();
  if (form != Form::call)
    return pattern == "*" && (form == Form::iterate || form == Form::subscript) ? 1 : 0;
  if (pattern == "*") return 0;
  if (pattern.back() == '*') {
    pattern.remove_suffix(1);
    return callee.substr(0, pattern.size()) == pattern ? 1 + pattern.size() : 0;
  }
  bool tail = false;
  size_t rank = kMethod;
  if (pattern.front() == '*') {
    pattern.remove_prefix(1);
    tail = true;
    rank = 1;
  } else if (pattern.front() == '.') {
    tail = true;  // a method of any receiver: "x.softmax" as well as ".softmax"
  }
  bool ends = tail && callee.size() >= pattern.size() &&
              callee.substr(callee.size() - pattern.size()) == pattern;
  return ends ? rank + pattern.size() : 0;
}

Template read_template(JsonText& json, const JsonValue& value, const std::string& family) {
  static const std::vector<std::string> kFormNames = [] {
    std::vector<std::string> names;
    for (Form form : kForms) names.push_back(form_name(form));
    return names;
  }();
  Template t;
  t.family = family;
  if (value.kind != Kind::object) {
    json.fault(value, "a template must be an object");
    return t;
  }
  json.only(value, {"name", "forms", "callees"});
  json.read(value, "name", t.name);
  json.read(value, "forms", t.forms);
  json.read(value, "callees", t.callees);
  if (json.failed()) return t;
  const JsonValue &forms = *value.find("forms"), &callees = *value.find("callees");
  if (t.name.empty()) json.fault(*value.find("name"), "a template needs a name");
  if (t.forms.empty()) json.fault(forms, "a template needs at least one form");
  if (t.callees.empty()) json.fault(callees, "a template needs at least one callee");
  for (const JsonValue& form : forms.items)
    if (std::find(kFormNames.begin(), kFormNames.end(), form.string) == kFormNames.end())
      json.fault(form, "unknown form '" + form.string + "'", nearest(form.string, kFormNames));
  for (const JsonValue& callee : callees.items) {
    const std::string& text = callee.string;
    // A callee without a letter is an operator's token: "**" is a power and no pattern.
    bool operators = text.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") ==
                     std::string::npos;
    if (text.empty())
      json.fault(callee, "an empty callee");
    else if (!operators && text.size() > 1 && text.find('*', 1) < text.size() - 1)
      json.fault(callee, "'*' may stand only at one end of a callee");
    else if (!operators && text.front() == '*' && text.back() == '*')
      json.fault(callee, "'*' may stand only at one end of a callee");
  }
  // Written as people import them, compared as what they are.
  for (std::string& callee : t.callees) callee = full_name(callee);
  return t;
}

void read_family(const fs::path& path, std::vector<Template>& templates,
                 std::map<std::string, std::string>& names, Diagnostics& diags) {
  std::string text, error;
  if (!read_file(path.string(), text, error)) {
    Diagnostic d;
    d.file = path.string();
    d.message = error;
    diags.add(d);
    return;
  }
  JsonText json(path.string(), std::move(text), diags);
  JsonValue root;
  if (!json.parse(root) ||
      !json.check_version(root, "opguard_templates", kTemplateVersion, "a template file"))
    return;
  json.only(root, {"opguard_templates", "description", "templates"});
  const JsonValue* items = json.member(root, "templates", Kind::array);
  if (!items) return;
  for (const JsonValue& item : items->items) {
    Template t = read_template(json, item, path.stem().string());
    if (json.failed()) return;
    auto [known, fresh] = names.emplace(t.name, t.family);
    if (!fresh)
      return json.fault(*item.find("name"),
                        "template '" + t.name + "' is already in " + known->second + ".json");
    templates.push_back(std::move(t));
  }
}

}  // namespace

const Template* TemplateLibrary::accept(const Site& site) const {
  const std::string form = form_name(site.form);
  const std::string callee = full_callee(site);
  // "self.norm" of a call the parser names ".norm" with receiver "self".
  const std::string whole =
      !callee.empty() && callee.front() == '.' ? site.receiver + callee : callee;
  const Template* best = nullptr;
  size_t best_closeness = 0;
  for (const Template& t : templates) {
    if (std::find(t.forms.begin(), t.forms.end(), form) == t.forms.end()) continue;
    for (const std::string& pattern : t.callees) {
      size_t close =
          std::max(closeness(pattern, callee, site.form), closeness(pattern, whole, site.form));
      // Of equally close ones the first is kept: files are read in the order of their names.
      if (close <= best_closeness) continue;
      best = &t;
      best_closeness = close;
    }
  }
  return best;
}

llvm::Expected<TemplateLibrary> read_templates(const std::string& dir, Diagnostics& diags) {
  std::vector<fs::path> paths;
  std::error_code ec;
  for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec))
    if (it->path().extension() == ".json") paths.push_back(it->path());
  if (ec) return make_error("cannot read templates in " + dir + ": " + ec.message());
  if (paths.empty()) return make_error("no templates (*.json) in " + dir);
  std::sort(paths.begin(), paths.end());
  TemplateLibrary library;
  std::map<std::string, std::string> names;  // -> family
  size_t before = diags.items().size();
  for (const fs::path& path : paths) read_family(path, library.templates, names, diags);
  if (diags.items().size() > before) return make_error("the templates in " + dir + " are at fault");
  return library;
}

}  // namespace opguard
