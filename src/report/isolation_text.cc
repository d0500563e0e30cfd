// What --isolate found, as text and as JSON.
//
//   isolated: 2 independent faults; 118 values of a in place
//     proven  layout at model.py:40 attention.transpose:q7k2, error 0.71, allowed 2.1e-06
//       it has the elements of run a's tensor, or of what it was made of, at other places
//     41 tensors that differed are run a's now: they only followed
//     not put in: 3 values, since no selection means the operator that reads it
//
// All that was not put in is counted with its reason. A tensor that still differs and was made of
// one of these is neither a fault nor cleared.
//
// Counterexample: an error without a bound. Of a value that is not finite only the place is told.
#include "report/isolation_text.h"

#include <cmath>

#include "align/judge/pivot_view.h"
#include "report/reasons.h"
#include "report/tolerance_text.h"
#include "support/text.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFaultsShown = 20;

}  // namespace

const char* not_put_words(NotPut why) {
  switch (why) {
    case NotPut::no_placement:
      return "what the ranks would hold of it is not known";
    case NotPut::may_be_parts:
      return "it may be parts of a sum, and goes where those are added up";
    case NotPut::shares_memory:
      return "it lies in the memory of a parameter or buffer, which would stay changed";
    case NotPut::other_elements:
      return "it is read in another form, or in a type that run a's cannot be made into";
    case NotPut::unnamed:
      return "no selection means the operator that reads it";
    case NotPut::unrepeated:
      return "run a, made again, has another value there or wrote none";
    case NotPut::too_much:
      return "it is more than one run is given";
    case NotPut::refused:
      return "the run refused it";
    case NotPut::added_up:
      return "autograd added it up, and which node of run a reads that sum is not known";
  }
  return "";
}

const char* not_put_name(NotPut why) {
  // In the order of NotPut.
  static constexpr const char* kNames[kNotPuts] = {
      "no_placement", "may_be_parts", "shares_memory", "other_elements", "unnamed",
      "unrepeated",   "too_much",     "refused",       "added_up"};
  return kNames[static_cast<size_t>(why)];
}

void print_isolation(TerminalLines& out) {
  if (!out.report.isolation) return;
  const Isolation& found = *out.report.isolation;
  out.line("");
  out.line(out.paint("1", "isolated") + ": " + counted(found.faults.size(), "independent fault") +
           "; " + counted(found.put, "value") + " of a in place");
  for (size_t i = 0; i < std::min(found.faults.size(), kFaultsShown); ++i) {
    const IndependentFault& fault = found.faults[i];
    const PivotView pivot = view(out.report.a, out.report.b, fault.pivot);
    std::string text = std::string("  ") + (fault.proven ? "proven" : "not proven") + "  " +
                       kind_name(fault.pivot.kind) + " at " + place(pivot.b) + " " +
                       pivot.b.boundary;
    if (std::isfinite(fault.error))
      text += ", error " + short_number(fault.error) + ", allowed " + short_number(fault.allowed);
    out.line(shown(text));
    out.line("    " + shown(words(out.report.a, out.report.b, fault.pivot.why)));
  }
  if (found.faults.size() > kFaultsShown)
    out.line("  and " + counted(found.faults.size() - kFaultsShown, "more fault"));
  if (found.follow > 0)
    out.line("  " + counted(found.follow, "tensor") + " that differed " +
             (found.follow == 1 ? "is" : "are") +
             " run a's now: " + (found.follow == 1 ? "it" : "they") + " only followed");
  if (found.pivot_follows)
    out.line("  the operator that was named before is one of these, and is named no more");
  if (found.hidden > 0)
    out.line("  " + counted(found.hidden, "tensor") + " still " +
             (found.hidden == 1 ? "differs" : "differ") +
             ", made of what could not be put in: whether by itself too is not told");
  for (size_t i = 0; i < kNotPuts; ++i)
    if (found.not_put[i] > 0)
      out.line("  not put in: " + counted(found.not_put[i], "value") + ", since " +
               not_put_words(static_cast<NotPut>(i)));
  for (const auto& [why, count] : found.refusals)
    out.line("    " + counted(count, "value") + ": " + shown(why));
}

Json isolation_json(const Report& report) {
  if (!report.isolation) return nullptr;
  const Isolation& found = *report.isolation;
  Json json = {{"faults", Json::array()},
               {"follow", found.follow},
               {"hidden", found.hidden},
               {"put", found.put},
               {"pivot_follows", found.pivot_follows},
               {"not_put", Json::object()},
               {"refusals", Json::object()}};
  for (const IndependentFault& fault : found.faults) {
    const PivotView pivot = view(report.a, report.b, fault.pivot);
    json["faults"].push_back({{"boundary", pivot.b.boundary},
                              {"place", place(pivot.b)},
                              {"kind", kind_name(fault.pivot.kind)},
                              {"state", fault.proven ? "proven" : "indicated"},
                              {"unknown", fault.unknown},
                              {"error", std::isfinite(fault.error) ? Json(fault.error) : Json()},
                              {"allowed", fault.allowed},
                              {"why", words(report.a, report.b, fault.pivot.why)}});
  }
  for (size_t i = 0; i < kNotPuts; ++i)
    if (found.not_put[i] > 0)
      json["not_put"][not_put_name(static_cast<NotPut>(i))] = found.not_put[i];
  for (const auto& [why, count] : found.refusals) json["refusals"][why] = count;
  return json;
}

}  // namespace opguard
