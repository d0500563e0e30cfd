#include "parser/site.h"
#include "support/text.h"

namespace opguard {

const char* form_name(Form form) {
  switch (form) {
    case Form::call:
      return "call";
    case Form::binary:
      return "binary";
    case Form::unary:
      return "unary";
    case Form::compare:
      return "compare";
    case Form::subscript:
      return "subscript";
    case Form::iterate:
      return "iterate";
    case Form::augment:
      return "augment";
    case Form::read:
      return "read";
    case Form::write:
      return "write";
    case Form::enter:
      return "enter";
    case Form::await:
      return "await";
    case Form::truth:
      return "truth";
    case Form::contains:
      return "contains";
    case Form::format:
      return "format";
  }
  return "call";
}

namespace {

std::string joined(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
  return out;
}

std::string range(uint32_t start, uint32_t end) {
  return "[" + std::to_string(start) + "," + std::to_string(end) + ")";
}

}  // namespace

bool is_quiet(const Site& site) {
  switch (site.form) {
    case Form::read:
    case Form::write:
    case Form::enter:
    case Form::await:
    case Form::truth:
    case Form::contains:
    case Form::format:
      return true;
    case Form::iterate:
      return site.callee == kUnpack;
    case Form::call:
      return site.callee.starts_with('@');
    default:
      return false;
  }
}

// One line, columns from 1 as in diagnostics:
//   model/rope.py:15:23: binary * [512,520) operand [512,514) 'x1' in rotate (name:cos) -> x
std::string dump(const Site& site) {
  std::string out = site.package.empty() ? "" : "<" + site.package + "> ";
  out += site.file + ":" + std::to_string(site.line) + ":" + std::to_string(site.column + 1) + ": ";
  out += std::string(form_name(site.form)) + " " + (site.callee.empty() ? "?" : site.callee);
  out += " " + range(site.start, site.end) + " operand ";
  out += range(site.operand_start, site.operand_end);
  if (!site.receiver.empty()) out += " '" + site.receiver + "'";
  out += " in " + site.scope + " (" + joined(site.arguments) + ")";
  if (!site.targets.empty()) out += " -> " + joined(site.targets);
  if (!site.refusal.empty()) out += " refused: " + site.refusal;
  return shown(out);
}

}  // namespace opguard
