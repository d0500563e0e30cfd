// What further runs found, below the pivot and behind each candidate that was tried.
//
//   causal        is it a cause?           it says                     colour
//   none          -                        not proven                  yellow
//   false         -                        proven harmless             green
//   true          no proven one            takes part                  red
//   true          the only one, proven     proven                      red
//   true          proven, and another      proven, one of 2 causes     red
//
// Counterexample: a candidate that takes part is no cause yet. Values put in place there change the
// outcome, and the difference may have begun before it.
#include "report/terminal_proof.h"

#include <algorithm>

#include "report/drill_text.h"
#include "report/proof_text.h"
#include "support/text.h"

namespace opguard {
namespace {

const char* causal_code(const Confirmation& found) {
  return !found.causal ? "1;33" : *found.causal ? "1;31" : "1;32";
}

std::string causal_text(const Report& report, size_t candidate) {
  const Confirmation& found = report.confirmations[candidate];
  if (!found.causal) return "not proven";
  if (!*found.causal) return "proven harmless";
  if (report.proof)
    for (const Cause& cause : report.proof->causes)
      if (cause.candidate == candidate && cause.state == ProofState::proven)
        return report.proof->causes.size() > 1
                   ? "proven, one of " + std::to_string(report.proof->causes.size()) + " causes"
                   : "proven";
  return "takes part";
}

std::string aten_text(const AtenTensor& tensor) {
  std::string text = tensor.name + " " + tensor.dtype + "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "] " + (tensor.value.empty() ? "unreadable" : tensor.value);
}

// What one of several causes is to the difference beside the others.
void print_need(TerminalLines& out, size_t candidate, const std::string& indent) {
  if (!out.report.proof) return;
  for (const Cause& cause : out.report.proof->causes)
    if (std::string text = need_text(*out.report.proof, cause);
        cause.candidate == candidate && !text.empty())
      out.line(indent + text);
}

}  // namespace

void print_found(TerminalLines& out, size_t candidate, const std::string& indent) {
  const Confirmation& found = out.report.confirmations[candidate];
  out.line(indent + out.paint(causal_code(found), causal_text(out.report, candidate)) + ": " +
           shown(words(out.report.a, out.report.b, found.why)));
  print_need(out, candidate, indent);
}

bool is_cause(const Report& report, size_t candidate) {
  return report.proof && std::any_of(report.proof->causes.begin(), report.proof->causes.end(),
                                     [&](const Cause& c) { return c.candidate == candidate; });
}

void print_confirmation(TerminalLines& out) {
  if (out.report.confirmations.empty()) return;
  const Confirmation& found = out.report.confirmations.front();
  if (!found.why && found.tensors.empty()) return;
  out.line("");
  if (!found.tensors.empty()) {
    out.line("  " + out.paint("1", "byte by byte"));
    // format_difference() has several lines; each is made safe by itself, so that its line ends
    // stay.
    for (const Difference& difference : found.tensors) {
      std::string text = format_difference(difference);
      for (size_t at = 0, end; at < text.size(); at = end + 1) {
        end = text.find('\n', at);
        out.line("  " + shown(text.substr(at, end - at)));
      }
    }
    out.line("");
  }
  print_found(out, 0, "  ");
  if (!out.report.proof) return;
  if (std::string text = asked_text(*out.report.proof); !text.empty()) out.line("  asked: " + text);
  if (std::string text = repetition_text(out.report); !text.empty()) out.line("  " + shown(text));
}

void print_drill(TerminalLines& out) {
  if (!out.report.drill) return;
  const Drill& found = *out.report.drill;
  out.line("");
  out.line("  " + out.paint("1", "inside it") + ": " + counted(found.count_a, "ATen operator") +
           " in a, " + grouped(found.count_b) + " in b; " + shown(words(found)));
  const std::optional<AtenOperator>* sides[2] = {&found.a, &found.b};
  for (int side : {0, 1}) {
    // Every operator agreed, or none ran: the sentence above has said so.
    if (!found.found()) break;
    if (!*sides[side]) {
      out.line("    " + out.paint("1", out.sides[side]) + "  has no such one");
      continue;
    }
    const AtenOperator& op = **sides[side];
    std::string text = op.name + "(" + op.scalars + ")";
    for (const AtenTensor& t : op.out) text += "  " + aten_text(t);
    for (const AtenTensor& t : op.written) text += "  writes " + aten_text(t);
    out.line("    " + out.paint("1", out.sides[side]) + "  " + shown(text));
  }
}

}  // namespace opguard
