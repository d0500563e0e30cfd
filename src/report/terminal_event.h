// report/terminal_event.h: one event on the terminal: what ran, when, and its source line.
//
//   a model/attention.py:33:12: in Attention.forward        print_source
//       att = scores.softmax(-1) @ v
//             ^~~~~~~~~~~~~~~~~~
//   backward (MulBackward0), step 3, micro-batch 0, rank 1  coordinates
//   train.py:12  loss.backward  (backward)                  event_line
//
// Counterexample: micro-batch of an optimizer's step. All of the step's own are done by then, so
// none is named.
#pragma once

#include <string>

#include "align/judge/pivot_view.h"
#include "report/terminal_lines.h"

namespace opguard {

inline constexpr uint32_t kColumns =
    96;  // of a source line, before it is cut around the expression

// "backward (MulBackward0), step 3, micro-batch 0, rank 1"
std::string coordinates(const EventView& view);
// "train.py:12  loss.backward  (backward)"
std::string event_line(const ProcessLog& log, uint32_t index);
// Cut to kColumns.
std::string shorten(const std::string& text);
// Its place and its line, the expression underlined. side: what the event is called.
// elsewhere: of a side that lacks it, same_boundary().
void print_source(TerminalLines& out, const char* side, const EventView& event,
                  const EventView& elsewhere = {});

}  // namespace opguard
