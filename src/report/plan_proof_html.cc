// One page without a script, in the style of the other reports. It has the verdict with its
// numbers, the statements in their sources, the input, and what a proof rests on.
//
//   output      grad:x of rank 0
//   position    [0, 3]
//   numbers     the model 1.5, the plan 3, factor 2
//   made at     mlp.py:40 with three lines around it
//   the input   x [2, 4]   0    1.5  -2   0.25  3
//                          1              1
//
// The input holds the unknowns that have a part in either number; other cells stay empty.
// Counterexample: all inputs in full. A reader would look for the few numbers that matter.
//
// The cost: a row of cells for every row up to the last that has a number.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "report/html_parts.h"
#include "report/plan_proof.h"
#include "report/plan_proof_words.h"
#include "support/text.h"

namespace opguard {
namespace {

using proving::Statement;

// A longer input is folded: the statements are what a reader looks for.
constexpr size_t kPointShown = 64;

std::string fact(std::string_view name, const std::string& markup) {
  return element("dt", "", name) + "<dd>" + markup + "</dd>";
}

std::string number_row(std::string_view name, const std::string& number, std::string_view kind) {
  return "<tr>" + element("th", "", name) + element("td", kind, number) + "</tr>";
}

std::string list_of(const std::vector<std::string>& lines) {
  std::string html = "<ul>";
  for (const std::string& line : lines) html += element("li", "", line);
  return html + "</ul>";
}

// To the last digit, so that numbers that differ in the seventh are told apart too. proof_number()
// has six.
std::string exact(double x) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", x);
  return text;
}

std::string numbers_html(const proving::Difference& d) {
  std::string html = "<table class=\"slots numbers\">" +
                     number_row("the model", exact(d.logical), "") +
                     number_row("the plan", exact(d.plan), "unlike");
  if (d.factor) html += number_row("factor, whatever the input", exact(*d.factor), "unlike");
  return html + "</table>";
}

// "up[5]" -> its name and index; names may hold brackets themselves.
std::pair<std::string, size_t> unknown_of(const std::string& text) {
  const size_t bracket = text.rfind('[');
  if (bracket == std::string::npos) return {text, 0};
  return {text.substr(0, bracket), std::strtoull(text.c_str() + bracket + 1, nullptr, 10)};
}

// The indices before the last of a tensor's row: "1, 2" of [2, 3, 4] for its sixth.
std::string row_name(const std::vector<int64_t>& shape, size_t row) {
  std::string name;
  for (size_t d = shape.size() - 1; d-- > 0;) {
    const auto extent = static_cast<size_t>(std::max<int64_t>(1, shape[d]));
    name = std::to_string(row % extent) + (name.empty() ? "" : ", " + name);
    row /= extent;
  }
  return name;
}

// Each tensor in rows of its last dimension. What has no part in either number stays empty.
std::string point_html(const proving::Captured& captured, const proving::Difference& d) {
  std::map<std::string, std::map<size_t, double>> by_name;
  for (const auto& [unknown, value] : d.point) {
    const auto [name, index] = unknown_of(unknown);
    by_name[name][index] = value;
  }
  std::string table = "<table class=\"slots point\">";
  for (const auto& [name, values] : by_name) {
    const auto known = captured.inputs.find(name);
    const std::vector<int64_t> shape =
        known == captured.inputs.end() ? std::vector<int64_t>() : known->second.shape;
    const size_t width = shape.empty() ? 1 : std::max<size_t>(1, static_cast<size_t>(shape.back()));
    // Up to the last number that matters; rows without one are passed over below.
    const size_t rows = values.rbegin()->first / width + 1;
    size_t named = 0;
    for (size_t r = 0; r < rows; ++r) {
      std::string cells;
      bool any = false;
      for (size_t column = 0; column < width; ++column) {
        const auto value = values.find(r * width + column);
        any |= value != values.end();
        cells += element("td", "", value == values.end() ? "" : proof_number(value->second));
      }
      if (!any) continue;
      table += std::string("<tr") + (named == 0 ? " class=\"first\">" : ">") +
               element("th", "", named == 0 ? name + " " + proof_position(shape) : "") +
               element("th", "", shape.size() > 1 ? row_name(shape, r) : "") + cells + "</tr>";
      ++named;
    }
  }
  table += "</table>";
  return std::string("<details") + (d.point.size() > kPointShown ? ">" : " open>") +
         "<summary>the input that tells them apart: " +
         escaped(counted(d.point.size(), "unknown")) + "</summary><div class=\"wide\">" + table +
         "</div></details>";
}

std::string statements_html(const PlanProof& proof) {
  SourceFiles files;
  std::string html;
  const auto add = [&](const char* title, const std::optional<Statement>& s) {
    if (!s || s->line <= 0) return;
    std::string where = proof_operator(*s);
    if (!s->function.empty()) where += ", in " + s->function;
    for (const std::string& caller : proof_callers(*s)) where += ", called from " + caller;
    html += "<h3>" + escaped(title) + "</h3>" +
            source_block(proof_location(*s, proof.tree), files, where);
  };
  // Of a deadlock each rank's own statement; Result::at is the first of them.
  for (const Statement& s : proof.result.waiting)
    add(("rank " + std::to_string(s.rank) + " waits at").c_str(), s);
  if (proof.result.at && proof.result.waiting.empty()) add("at", proof.result.at);
  if (!proof.result.difference) return html;
  const proving::Difference& d = *proof.result.difference;
  add("made at", d.made);
  for (const Statement& s : d.fed) add("fed by", s);
  if (!d.made || passed_elsewhere(d)) add("passed at", d.passed);
  if (used_elsewhere(d)) add("used at", d.used);
  return html;
}

std::string difference_html(const PlanProof& proof) {
  const proving::Difference& d = *proof.result.difference;
  std::string html = "<dl class=\"fact\">";
  html +=
      fact("output", element("code", "", d.output) + escaped(" of rank " + std::to_string(d.rank)));
  html += fact("position", element("code", "", proof_position(d.position)));
  html += fact("numbers", numbers_html(d));
  html += fact("differ",
               escaped(std::to_string(d.differing) + " of " + counted(d.elements, "element")));
  std::string others;
  for (const std::string& name : proof.result.other_outputs)
    others += (others.empty() ? "" : ", ") + element("code", "", name);
  if (!others.empty()) html += fact("other outputs", others);
  return html + "</dl>";
}

constexpr std::string_view kProofStyle = R"(
main.proof { max-width: 960px; padding: 6px 20px 40px; }
main.proof h3 { margin: 14px 0 4px; color: var(--faint); }
main.proof h2 { margin: 22px 0 4px; font-weight: 600; font-size: 15px; }
main.proof li { margin: 3px 0 3px 14px; list-style: disc; }
main.proof details { margin-top: 18px; }
main.proof summary { cursor: pointer; }
main.proof .wide { overflow-x: auto; }
.slots.numbers { margin: 0; }
.slots.point td { text-align: right; font-variant-numeric: tabular-nums; }
.verdict h1.proved { color: var(--equal); }
.verdict h1.refuted { color: var(--pivot); }
.verdict h1.unknown { color: var(--later); }
)";

}  // namespace

std::string format_plan_proof_html(const PlanProof& proof) {
  const proving::Result& result = proof.result;
  const char* verdict = proof_verdict(result.verdict);
  std::string dims;
  for (const auto& [name, extent] : proof.captured.dims)
    dims += (dims.empty() ? "" : ", ") + name + "=" + std::to_string(extent);
  std::string html =
      "<header id=\"summary\"><div class=\"verdict\">" + element("h1", verdict, verdict) +
      element("span", "why", proof_headline(result)) + "</div><div class=\"made faint\">" +
      element("span", "", proof.captured.plan) + element("code", "", proof.identity.command) +
      element("span", "", proof.identity.date) + "</div></header>\n" + "<main class=\"proof\">\n";
  if (result.difference) html += difference_html(proof);
  html += statements_html(proof);
  if (result.difference) html += point_html(proof.captured, *result.difference);
  if (result.verdict == proving::Verdict::proved)
    html += "<h2>What it rests on</h2>" + list_of(proof_assumptions(result));
  std::vector<std::string> notes;
  if (result.verdict != proving::Verdict::proved) notes = proof_grants(result);
  if (const std::string full = proof_full(result); !full.empty()) notes.push_back(full);
  for (const std::string& name : result.not_compared)
    notes.push_back("not compared, since the model has no such output: " + name);
  if (!notes.empty()) html += "<h2>Notes</h2>" + list_of(notes);
  html += "<dl class=\"fact told\">" +
          fact("checked", escaped(proof_size(proof.captured, result))) +
          fact("sizes", element("code", "", dims)) +
          fact("command", element("code", "", proof.identity.command)) + "</dl>";
  return html_page("opguard prove: " + std::string(verdict), kProofStyle, html + "\n</main>\n");
}

}  // namespace opguard
