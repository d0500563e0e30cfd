#include "report/terminal_event.h"

#include "report/excerpt.h"
#include "report/place_text.h"
#include "support/text.h"

namespace opguard {

std::string coordinates(const EventView& view) {
  const Event& event = *view.event;
  std::string text = std::string(phase_name(event.phase));
  if (event.kind == EventKind::node)
    text += " (" + shown(view.log->text(event.node)) + ")";
  else if (event.kind == EventKind::accumulate)
    text += " (gradient accumulation)";
  text += ", step " + std::to_string(event.step);
  if (event.phase != Phase::optimizer) text += ", micro-batch " + std::to_string(event.micro_batch);
  text += ", rank " + std::to_string(view.log->rank);
  return text;
}

std::string event_line(const ProcessLog& log, uint32_t index) {
  const EventView event = view(log, index);
  std::string text = shown(place(event)) + "  " + shown(event.operator_name);
  if (event.event->kind == EventKind::node)
    text += "  (" + shown(log.text(event.event->node)) + ")";
  else if (event.event->phase != Phase::forward)
    text += "  (" + std::string(phase_name(event.event->phase)) + ")";
  return text;
}

std::string shorten(const std::string& text) {
  const MarkedLine cut = mark_line(text, 0, 0, kColumns);
  return cut.line;
}

// Where it is, and its line with a mark below it.
static void print_place(TerminalLines& out, const char* side, const EventView& event) {
  const Location& at = event.location;
  const Run& run = side == out.sides[0] ? out.report.a : out.report.b;
  const std::string place = place_text(*run.provenance, at);
  if (place.empty()) {
    out.line("  " + out.paint("1", side) + " " + shown(event.boundary) +
             ": its place is not known");
    return;
  }
  const Excerpt excerpt = read_excerpt(at);
  std::string where = shown(place);
  if (!at.function.empty() && at.function != "<module>") where += ": in " + shown(at.function);
  out.line("  " + out.paint("1", side) + " " + out.paint("36", where));
  if (!excerpt.line.empty()) {
    const MarkedLine marked = mark_line(excerpt.line, excerpt.from, excerpt.to, kColumns);
    out.line("      " + marked.line);
    if (marked.length > 0)
      out.line("      " + std::string(marked.indent, ' ') +
               out.paint("1;32", underline(marked.length)));
  }
  // A pivot may be named at a call or at a text that was proven. The operator itself stands
  // elsewhere then, and is told below.
  if (const Location& inner = event.inner; !inner.file.empty())
    out.line((event.at_text ? "      shows at: " : "      in it: ") + shown(inner.file) + ":" +
             std::to_string(inner.line) + "  " + shorten(shown(inner.text)));
}

void print_source(TerminalLines& out, const char* side, const EventView& event,
                  const EventView& elsewhere) {
  if (event || event.at_text) return print_place(out, side, event);
  // Not the same as absent: an operator that moved runs in both, at other moments.
  if (!elsewhere) return out.line("  " + out.paint("1", side) + " has no such operator");
  out.line("  " + out.paint("1", side) + " does not run it here, but in " + coordinates(elsewhere));
  print_place(out, side, elsewhere);
}

}  // namespace opguard
