// report/terminal_differences.h: what differs between the two events of a pair: tensors, arguments,
// results, an exception.
#pragma once

#include <optional>
#include <string>

#include "align/judge/pivot_view.h"
#include "report/terminal_lines.h"

namespace opguard {

// Of a pair that cannot be compared, what each of them left.
void print_differences(TerminalLines& out, const PivotView& both);

// "    arg0  a  float32[4, 8]  0123..:4567..", what differs from the other slot in red. width: of
// the names.
void print_slot(TerminalLines& out, const std::string& name, size_t width, const char* side,
                const ProcessLog& log, const std::optional<Slot>& slot,
                const std::optional<Slot>& other, bool shapes_differ);

}  // namespace opguard
