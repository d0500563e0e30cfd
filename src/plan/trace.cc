// Reads the traces of all processes of a preflight, and merges them into one.
//
//   trace-0-411.json    model.py:12 matmul    calls 3   order 7
//   trace-1-412.json    model.py:12 matmul    calls 3   order 5
//   merged              model.py:12 matmul    calls 6   order 5
//
// A use is the same if its place in the source is. Counts add up, names unite, and the earliest
// order stays. The lowest rank speaks for the versions and the command.
//
// Counterexample: an empty trace is no process that did nothing. The file's name is taken before
// the program runs, so an empty one says that its end could not be written, and is an error.
//
// The cost: one look-up a use, in a map of places.
#include "plan/trace.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <tuple>

#include "plan/json_text.h"
#include "support/diagnostics.h"
#include "support/text.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;
using Kind = JsonValue::Kind;

constexpr int kTraceVersion = 2;

// Kernels by their shortened names: two instances that only their parameters tell apart are one.
void read_kernels(JsonText& json, const JsonValue& value, const char* key,
                  std::map<std::string, uint64_t>& out) {
  std::map<std::string, uint64_t> names;
  json.read(value, key, names);
  for (const auto& [name, count] : names) out[kernel_name(name)] += count;
}

// Fields unknown here are skipped: the tracer travels with the tool, but may say more for people.
void read_place(JsonText& json, const JsonValue& value, TracedUse& use) {
  json.read(value, "path", use.path);
  json.read(value, "scope", use.scope);
  json.read(value, "line", use.line);
  json.read(value, "column", use.column);
  json.read(value, "end_line", use.end_line);
  json.read(value, "end_column", use.end_column);
  json.read(value, "opcode", use.opcode);
  // Only of traces up to Python 3.11.
  if (value.find("of")) {
    json.read(value, "nth", use.nth);
    json.read(value, "of", use.of);
  }
  if (value.find("tested")) {
    if (const JsonValue* tested = json.member(value, "tested", Kind::object)) {
      json.read(*tested, "line", use.tested.line);
      json.read(*tested, "end_line", use.tested.end_line);
      json.read(*tested, "column", use.tested.column);
      json.read(*tested, "end_column", use.tested.end_column);
    }
  }
}

TracedCall read_call(JsonText& json, const JsonValue& value) {
  TracedCall call;
  if (value.kind != Kind::object) {
    json.fault(value, "a call must be an object");
    return call;
  }
  json.read(value, "path", call.path);
  json.read(value, "scope", call.scope);
  json.read(value, "line", call.line);
  if (const JsonValue* caller = json.member(value, "caller", Kind::object))
    read_place(json, *caller, call.caller);
  return call;
}

// What is only there where it says something is asked for with find().
TracedUse read_use(JsonText& json, const JsonValue& value) {
  TracedUse use;
  if (value.kind != Kind::object) {
    json.fault(value, "a use must be an object");
    return use;
  }
  read_place(json, value, use);
  json.read(value, "callee", use.callee);
  json.read(value, "order", use.order);
  json.read(value, "calls", use.calls);
  json.read(value, "activities", use.activities);
  json.read(value, "backward", use.backward);
  json.read(value, "phases", use.phases);
  json.read(value, "compute", use.compute);
  json.read(value, "dtypes", use.dtypes);
  json.read(value, "writes", use.writes);
  if (value.find("draws")) json.read(value, "draws", use.draws);
  if (value.find("kernels")) {
    read_kernels(json, value, "kernels", use.kernels);
    json.read(value, "kernel_phases", use.kernel_phases);
    json.read(value, "transfers", use.transfers);
    json.read(value, "streams", use.streams);
    json.read(value, "device_ns", use.device_ns);
  }
  return use;
}

void read_devices(JsonText& json, const JsonValue& root, Trace& trace) {
  if (const JsonValue* devices = json.member(root, "devices", Kind::array))
    for (const JsonValue& item : devices->items) {
      TracedDevice& d = trace.devices.emplace_back();
      json.read(item, "type", d.type);
      json.read(item, "source", d.source);
      json.read(item, "clock", d.clock);
      json.read(item, "kernels", d.kernels);
      json.read(item, "dropped", d.dropped);
    }
  if (const JsonValue* phases = json.member(root, "foreign_kernels", Kind::object))
    for (const auto& [phase, names] : phases->members)
      read_kernels(json, *phases, phase.string.c_str(), trace.foreign_kernels[phase.string]);
  read_kernels(json, root, "accumulated_kernels", trace.accumulated_kernels);
}

Trace read_trace(JsonText& json, const JsonValue& root) {
  Trace trace;
  json.read(root, "python", trace.python);
  json.read(root, "torch", trace.torch);
  json.read(root, "argv", trace.argv);
  json.read(root, "rank", trace.rank);
  json.read(root, "steps", trace.steps);
  if (root.find("newest")) json.read(root, "newest", trace.newest);
  if (root.find("ended")) json.read(root, "ended", trace.ended);
  json.read(root, "complete", trace.complete);
  json.read(root, "activities", trace.activities);
  json.read(root, "foreign", trace.foreign);
  if (const JsonValue* phases = json.member(root, "foreign_compute", Kind::object))
    for (const auto& [phase, names] : phases->members)
      json.read(*phases, phase.string.c_str(), trace.foreign_compute[phase.string]);
  json.read(root, "accumulated", trace.accumulated);
  if (root.find("devices")) read_devices(json, root, trace);
  json.read(root, "micro_batches", trace.micro_batches);
  json.read(root, "errors", trace.errors);
  json.read(root, "missing_packages", trace.missing_packages);
  json.read(root, "files", trace.files);
  if (const JsonValue* roots = json.member(root, "roots", Kind::array))
    for (const JsonValue& item : roots->items) {
      SourceRoot& r = trace.roots.emplace_back();
      json.read(item, "package", r.package);
      json.read(item, "dir", r.dir);
      json.read(item, "subdir", r.subdir);
    }
  if (const JsonValue* uses = json.member(root, "uses", Kind::array))
    for (const JsonValue& item : uses->items) trace.uses.push_back(read_use(json, item));
  if (root.find("calls"))
    if (const JsonValue* calls = json.member(root, "calls", Kind::array))
      for (const JsonValue& item : calls->items) trace.calls.push_back(read_call(json, item));
  return trace;
}

// First seen stays; nothing is listed twice.
template <typename T>
void unite(std::vector<T>& into, const std::vector<T>& from) {
  for (const T& item : from)
    if (std::find(into.begin(), into.end(), item) == into.end()) into.push_back(item);
}

void add_counts(std::map<std::string, uint64_t>& into,
                const std::map<std::string, uint64_t>& from) {
  for (const auto& [name, count] : from) into[name] += count;
}

using Place = std::tuple<std::string, int32_t, int32_t, int32_t, int32_t, std::string, std::string,
                         uint32_t, int32_t, int32_t>;

// Without columns the line alone does not tell two operators of one opcode apart; the callee does.
Place place_of(const TracedUse& use) {
  return {use.path,
          use.line,
          use.column,
          use.end_line,
          use.end_column,
          use.opcode,
          use.column < 0 ? use.callee : "",
          use.nth,
          use.tested.line,
          use.tested.column};
}

// A device of the same kind, seen in the same way, is one over all processes.
void merge_devices(Trace& into, const Trace& from) {
  for (const TracedDevice& device : from.devices) {
    auto known = std::find_if(into.devices.begin(), into.devices.end(), [&](const TracedDevice& d) {
      return d.type == device.type && d.source == device.source && d.clock == device.clock;
    });
    if (known == into.devices.end()) {
      into.devices.push_back(device);
      continue;
    }
    known->kernels += device.kernels;
    known->dropped += device.dropped;
  }
  for (const auto& [phase, names] : from.foreign_kernels)
    add_counts(into.foreign_kernels[phase], names);
  add_counts(into.accumulated_kernels, from.accumulated_kernels);
}

// `at`: where each place's use stands in `into`. The types of arguments stay those of the first
// trace.
void merge(Trace& into, Trace from, std::map<Place, size_t>& at) {
  into.steps = std::max(into.steps, from.steps);
  into.newest = std::max(into.newest, from.newest);
  into.ended = into.ended || from.ended;
  // One process that died makes the whole incomplete; one that saw all there is says that tracing
  // ended.
  into.complete = into.complete && from.complete;
  into.activities += from.activities;
  into.foreign += from.foreign;
  for (const auto& [phase, names] : from.foreign_compute)
    add_counts(into.foreign_compute[phase], names);
  add_counts(into.accumulated, from.accumulated);
  add_counts(into.micro_batches, from.micro_batches);
  merge_devices(into, from);
  into.errors += from.errors;
  into.calls.insert(into.calls.end(), from.calls.begin(), from.calls.end());
  unite(into.roots, from.roots);
  unite(into.missing_packages, from.missing_packages);
  into.files.insert(into.files.end(), from.files.begin(), from.files.end());
  for (TracedUse& use : from.uses) {
    auto [found, fresh] = at.try_emplace(place_of(use), into.uses.size());
    if (fresh) {
      into.uses.push_back(std::move(use));
      continue;
    }
    TracedUse& known = into.uses[found->second];
    known.order = std::min(known.order, use.order);
    known.calls += use.calls;
    add_counts(known.activities, use.activities);
    add_counts(known.backward, use.backward);
    add_counts(known.phases, use.phases);
    add_counts(known.compute, use.compute);
    add_counts(known.kernels, use.kernels);
    add_counts(known.transfers, use.transfers);
    add_counts(known.kernel_phases, use.kernel_phases);
    unite(known.streams, use.streams);
    known.device_ns += use.device_ns;
    unite(known.writes, use.writes);
    known.draws |= use.draws;
    if (known.callee.empty()) known.callee = use.callee;
  }
}

void dump_counts(std::ostream& out, const std::map<std::string, uint64_t>& counts) {
  for (const auto& [name, count] : counts) out << " " << shown(name) << "=" << count;
}

}  // namespace

llvm::Expected<Trace> read_traces(const std::string& dir) {
  std::vector<std::string> paths;
  std::error_code ec;
  for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
    std::string name = it->path().filename().string();
    if (name.rfind("trace-", 0) == 0 && it->path().extension() == ".json")
      paths.push_back(it->path().string());
  }
  if (ec) return make_error(dir + ": " + ec.message());
  if (paths.empty())
    return make_error(dir + ": no trace-*.json there: no traced process imported torch");
  std::sort(paths.begin(), paths.end());

  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    std::string text, error;
    if (!read_file(path, text, error)) return make_error(error);
    // The name is taken first. The program said why it could write no more.
    if (text.empty())
      return make_error(path +
                        " is empty: the program could not write its trace (a full disk, or "
                        "a file size limit?)");
    Diagnostics diags;
    JsonText json(path, std::move(text), diags);
    JsonValue root;
    if (json.parse(root) && json.check_version(root, "opguard_trace", kTraceVersion, "a trace"))
      traces.push_back(read_trace(json, root));
    if (json.failed()) {
      const Diagnostic& d = diags.items().front();
      return make_error(d.file + ":" + std::to_string(d.line) + ":" + std::to_string(d.column + 1) +
                        ": " + d.message);
    }
  }
  // The lowest rank speaks for versions and command; then by file name, which ends in a pid.
  std::stable_sort(traces.begin(), traces.end(),
                   [](const Trace& a, const Trace& b) { return a.rank < b.rank; });
  Trace merged;
  merged.python = traces[0].python;
  merged.torch = traces[0].torch;
  merged.argv = traces[0].argv;
  merged.rank = traces[0].rank;
  std::map<Place, size_t> at;
  for (Trace& trace : traces) merge(merged, std::move(trace), at);
  std::sort(merged.files.begin(), merged.files.end());
  merged.files.erase(std::unique(merged.files.begin(), merged.files.end()), merged.files.end());
  // By first execution. Two processes count for themselves, so of one number the lower rank's comes
  // first.
  std::stable_sort(merged.uses.begin(), merged.uses.end(),
                   [](const TracedUse& a, const TracedUse& b) { return a.order < b.order; });
  return merged;
}

// A line a use, for people and for tests.
std::string dump(const Trace& trace) {
  std::ostringstream out;
  out << "trace python " << shown(trace.python) << " torch " << shown(trace.torch) << " rank "
      << trace.rank << " steps " << trace.steps << (trace.complete ? "" : " incomplete")
      << "\nargv";
  for (const std::string& arg : trace.argv) out << " " << shown(arg);
  out << "\nactivities " << trace.activities << " foreign " << trace.foreign << " errors "
      << trace.errors << "\n";
  for (const auto& [phase, names] : trace.foreign_compute) {
    out << "foreign " << shown(phase) << ";";
    dump_counts(out, names);
    out << "\n";
  }
  out << "accumulated;";
  dump_counts(out, trace.accumulated);
  for (const TracedDevice& d : trace.devices)
    out << "\ndevice " << shown(d.type) << " by " << shown(d.source) << " clock " << shown(d.clock)
        << " kernels " << d.kernels << " dropped " << d.dropped;
  for (const auto& [phase, names] : trace.foreign_kernels) {
    out << "\nforeign kernels " << shown(phase) << ";";
    dump_counts(out, names);
  }
  if (!trace.accumulated_kernels.empty()) {
    out << "\naccumulated kernels;";
    dump_counts(out, trace.accumulated_kernels);
  }
  if (trace.ended) out << "\nended, the newest in step " << trace.newest;
  out << "\nmicro-batches of a step;";
  dump_counts(out, trace.micro_batches);
  out << "\n";
  for (const SourceRoot& root : trace.roots)
    out << "root " << shown(root.package.empty() ? "(tree)" : root.package) << " "
        << shown(root.dir) << " " << shown(root.subdir) << "\n";
  for (const std::string& package : trace.missing_packages)
    out << "missing " << shown(package) << "\n";
  for (const std::string& file : trace.files) out << "file " << shown(file) << "\n";
  for (const TracedUse& use : trace.uses) {
    out << "use " << use.order << " " << shown(use.path) << ":" << use.line << ":" << use.column
        << "-" << use.end_line << ":" << use.end_column << " " << shown(use.scope) << " "
        << shown(use.opcode)
        << (use.of > 1 ? " " + std::to_string(use.nth) + " of " + std::to_string(use.of) : "")
        << " " << shown(use.callee.empty() ? "?" : use.callee) << " calls " << use.calls << ";";
    dump_counts(out, use.activities);
    out << "; backward";
    dump_counts(out, use.backward);
    out << ";";
    dump_counts(out, use.phases);
    out << "; compute";
    dump_counts(out, use.compute);
    out << ";";
    for (const std::string& dtype : use.dtypes) out << " " << dtype;
    if (!use.writes.empty()) out << "; writes";
    for (const std::string& name : use.writes) out << " " << name;
    if (!use.kernels.empty() || !use.transfers.empty()) {
      out << "; kernels";
      dump_counts(out, use.kernels);
      out << ";";
      dump_counts(out, use.transfers);
      out << "; streams";
      for (const std::string& stream : use.streams) out << " " << stream;
      out << " ns " << use.device_ns;
    }
    out << "\n";
  }
  return out.str();
}

}  // namespace opguard
