// Switches of the library, variables it reads, operators without a deterministic kernel, and
// kernels that are chosen by their time.
//
//   torch.backends.cudnn.benchmark = True            by_time, in train.py:4
//   use_deterministic_algorithms(False) in step 2    changed: True, then False
//   num_threads 4 on rank 0, 8 on rank 1             ranks_differ
//   x.put_(index, values)                            no_kernel, in train.py:12
//
// Counterexample: a switch that nobody has touched is never violated, whatever its value. Two runs
// on one machine have the same default.
//
// The cost: for each switch once over the settings and changes that were seen.
#include <algorithm>
#include <map>

#include "determinism/judge.h"
#include "determinism/variables.h"

namespace opguard {
namespace {

struct Switch {
  const char* name;
  const char* by_time;  // with this value kernels are chosen by their time
  bool of_cuda;         // nothing reads it on a processor
};

// The names are those of python/opguard/observe/switches.py.
constexpr Switch kSwitches[] = {
    {"deterministic_algorithms", "", false},
    {"fill_uninitialized_memory", "", false},
    {"cudnn.deterministic", "", true},
    {"cudnn.benchmark", "True", true},
    {"cudnn.allow_tf32", "", true},
    {"matmul.allow_tf32", "", true},
    {"matmul.allow_bf16_reduced_precision_reduction", "", true},
    {"matmul.allow_fp16_reduced_precision_reduction", "", true},
    {"float32_matmul_precision", "", false},
    {"num_threads", "", false},
    {"default_dtype", "", false},
    {"flush_denormal", "", false},
};

// What the program did with a switch, in order.
struct Course {
  std::string first, last;
  SetBy by = SetBy::nobody;
  CallSite place;  // of the last setting
  bool changed = false;
  std::string before, after;  // of the first change in a later step
  int64_t step = 0;
  CallSite changed_at;
};

// `sets`: a setter of torch was called, and the place is known. `changes`: reading at a step's end
// found another value, and nobody knows from where.
Course course_of(const ProcessFacts& process, const std::string& name) {
  Course course;
  const nlohmann::json& fields = process.values.fields;
  if (fields.is_object() && fields.contains("switches") && fields["switches"].is_object() &&
      fields["switches"].contains(name)) {
    const Fact start{fields["switches"][name]};
    course.first = start.text("first");
    if (start.text("by") == "control") course.by = SetBy::control;
  }
  std::string now = course.first;
  // By step, then as they were noted: a poll at a step's end comes after what was set in it.
  struct Change {
    int64_t step;
    bool seen;
    const Fact* fact;
  };
  std::vector<Change> all;
  for (const Fact& fact : process.list("sets"))
    if (fact.text("name") == name) all.push_back({fact.number("at_step"), true, &fact});
  for (const Fact& fact : process.list("changes"))
    if (fact.text("name") == name) all.push_back({fact.number("at_step"), false, &fact});
  std::stable_sort(all.begin(), all.end(), [](const Change& a, const Change& b) {
    return std::pair(a.step, !a.seen) < std::pair(b.step, !b.seen);
  });
  for (const Change& change : all) {
    const std::string value = change.fact->text("value");
    // Before the first step has ended a program is still setting up: no step has run under the old
    // value.
    if (!course.changed && value != now && change.step > 0) {
      course.changed = true;
      course.before = now;
      course.after = value;
      course.step = change.step;
      course.changed_at = change.fact->place();
    }
    if (change.seen) {
      // The program sets what control has set already: control's word is no longer the last.
      course.by = SetBy::code;
      course.place = change.fact->place();
    }
    now = value;
  }
  // What was read at the end goes before what was seen being set.
  const TextMap end = process.map("switches_at_end");
  const auto at = end.find(name);
  course.last = at == end.end() ? now : at->second;
  return course;
}

Finding about_switch(const Switch& asked, const Course& course) {
  Finding finding;
  finding.surface = Surface::arithmetic;
  finding.subject = Subject::flag;
  finding.name = asked.name;
  finding.value = course.last;
  finding.by = course.by;
  finding.place = course.place;
  if (course.changed) {
    finding.hold = Hold::violated;
    finding.ground = Ground::changed;
    finding.names = {course.before, course.after};
    finding.numbers = {course.step};
    finding.place = course.changed_at;
    finding.by = course.changed_at.known() ? SetBy::code : SetBy::nobody;
  } else if (*asked.by_time && course.last == asked.by_time && course.by != SetBy::nobody) {
    // Only who turned it on is told: a default stays one.
    finding.hold = Hold::violated;
    finding.ground = Ground::by_time;
  } else if (course.by != SetBy::nobody) {
    finding.hold = Hold::controlled;
    finding.ground = Ground::set;
  } else {
    finding.ground = Ground::by_default;
  }
  return finding;
}

void judge_switches(const ProcessFacts& process, std::vector<Finding>& out) {
  const bool cuda = process.values.flag("cuda");
  bool quiet = false;
  for (const Switch& asked : kSwitches) {
    const Course course = course_of(process, asked.name);
    if (course.first.empty() && course.last.empty()) continue;
    Finding finding = about_switch(asked, course);
    const Finding threads = variable_finding(process, Surface::arithmetic, "OMP_NUM_THREADS");
    if (finding.name == "num_threads" && finding.hold == Hold::left &&
        threads.hold == Hold::controlled) {
      finding.hold = Hold::controlled;
      finding.ground = Ground::set;
      finding.by = threads.by;
      finding.place = threads.place;
    }
    const bool untouched = finding.hold == Hold::left;
    // One row for all of them: nothing reads them without CUDA.
    if (untouched && asked.of_cuda && !cuda) {
      quiet = true;
      continue;
    }
    // Whoever leaves these alone has nothing to be told.
    if (untouched && (finding.name == "default_dtype" || finding.name == "flush_denormal" ||
                      finding.name == "fill_uninitialized_memory"))
      continue;
    out.push_back(finding);
  }
  if (quiet) {
    Finding finding;
    finding.surface = Surface::arithmetic;
    finding.subject = Subject::cuda;
    finding.ground = Ground::unused;
    out.push_back(finding);
  }
}

// Those that nobody has set are left out, but for cuBLAS's workspace where CUDA is used: torch's
// deterministic mode wants it.
void judge_variables(const ProcessFacts& process, std::vector<Finding>& out) {
  const bool cuda = process.values.flag("cuda");
  for (const char* name : {"CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "MKL_CBWR",
                           "FLASH_ATTENTION_DETERMINISTIC", "NVTE_ALLOW_NONDETERMINISTIC_ALGO"}) {
    Finding finding = variable_finding(process, Surface::arithmetic, name);
    const bool of_cublas = std::string(name) == "CUBLAS_WORKSPACE_CONFIG";
    if (finding.hold == Hold::left && !(cuda && of_cublas)) continue;
    out.push_back(finding);
  }
}

// torch names such an operator only where deterministic algorithms are asked for. So the second run
// asks, and one run alone says something where the program asked by itself.
void judge_operators(const RunFacts& run, const RunFacts* again, std::vector<Finding>& out) {
  std::vector<Finding> found;
  auto collect = [&](const RunFacts& facts) {
    for (const ProcessFacts& process : facts.processes)
      for (const Fact& fact : process.list("operators")) {
        Finding finding;
        finding.surface = Surface::arithmetic;
        finding.subject = Subject::op;
        finding.hold = Hold::violated;
        finding.ground = Ground::no_kernel;
        finding.name = fact.text("name");
        finding.place = fact.place();
        if (fact.flag("backward")) finding.names.push_back("backward");
        if (fact.flag("stopped")) finding.names.push_back("stopped");
        const bool known = std::any_of(found.begin(), found.end(), [&](const Finding& other) {
          return other.name == finding.name && other.place == finding.place;
        });
        if (!known) found.push_back(finding);
      }
  };
  collect(run);
  if (again) collect(*again);
  const ProcessFacts& first = *run.trained().front();
  const auto asked = first.map("switches_at_end").find("deterministic_algorithms");
  // That no operator was named means something only where somebody listened.
  const bool heard =
      again || (asked != first.map("switches_at_end").end() && asked->second == "True");
  if (found.empty() && heard) {
    Finding finding;
    finding.surface = Surface::arithmetic;
    finding.subject = Subject::operators;
    finding.ground = Ground::unused;
    finding.hold = Hold::controlled;
    out.push_back(finding);
  }
  out.insert(out.end(), found.begin(), found.end());
}

// Inductor and Triton may measure several kernels and take the fastest, which is another one on
// another day.
void judge_compiler(const ProcessFacts& process, std::vector<Finding>& out) {
  const int64_t frames = process.values.number("compiled_frames");
  const TextMap inductor = process.map("inductor");
  auto on = [&](const char* name) {
    const auto at = inductor.find(name);
    return at != inductor.end() && at->second == "True";
  };
  Finding finding;
  finding.surface = Surface::arithmetic;
  finding.subject = Subject::compile;
  finding.name = "torch.compile";
  bool tuned = on("max_autotune") || on("max_autotune_gemm") || on("coordinate_descent_tuning");
  for (const Fact& fact : process.list("compiled")) {
    // The first call of torch.compile is named, or the last one that asks for tuning.
    if (finding.place.known() && !fact.flag("tuned")) continue;
    finding.place = fact.place();
    finding.value = fact.text("mode");
    tuned |= fact.flag("tuned");
  }
  if (frames > 0 || finding.place.known()) {
    finding.by = tuned && finding.place.known() ? SetBy::code : SetBy::nobody;
    finding.hold = tuned ? Hold::violated : Hold::left;
    finding.ground = tuned ? Ground::by_time : Ground::by_default;
    for (const char* name : {"TORCHINDUCTOR_MAX_AUTOTUNE", "TORCHINDUCTOR_DETERMINISTIC"}) {
      const Finding set = variable_finding(process, Surface::arithmetic, name);
      if (set.hold == Hold::left || tuned) continue;
      finding.hold = Hold::controlled;
      finding.ground = Ground::set;
      finding.by = set.by;
    }
    out.push_back(finding);
  }
  if (process.values.number("triton_autotuners") > 0) {
    const Finding kept = variable_finding(process, Surface::arithmetic, "TRITON_CACHE_AUTOTUNING");
    Finding triton;
    triton.surface = Surface::arithmetic;
    triton.subject = Subject::compile;
    triton.name = "triton.autotune";
    // Triton then keeps its choice in a cache: two runs on one machine take the same.
    const bool pinned = kept.hold == Hold::controlled && kept.value == "1";
    triton.hold = pinned ? Hold::controlled : Hold::violated;
    triton.ground = pinned ? Ground::set : Ground::by_time;
    triton.by = pinned ? kept.by : SetBy::nobody;
    triton.numbers = {process.values.number("triton_autotuners")};
    out.push_back(triton);
  }
}

// A switch that has one value on the first rank and another on some rank. `names`: the values by
// rank, "" where one does not have the switch.
void judge_ranks(const RunFacts& run, std::vector<Finding>& out) {
  const auto trained = run.trained();
  if (trained.size() < 2) return;
  const TextMap first = trained.front()->map("switches_at_end");
  for (const auto& [name, value] : first) {
    Finding finding;
    finding.surface = Surface::arithmetic;
    finding.subject = Subject::flag;
    finding.name = name;
    finding.hold = Hold::violated;
    finding.ground = Ground::ranks_differ;
    bool differ = false;
    for (const ProcessFacts* process : trained) {
      const TextMap end = process->map("switches_at_end");
      const auto at = end.find(name);
      finding.names.push_back(at == end.end() ? "" : at->second);
      differ |= at != end.end() && at->second != value;
    }
    if (differ) out.push_back(finding);
  }
}

}  // namespace

void judge_arithmetic(const RunFacts& run, const RunFacts* again, std::vector<Finding>& out) {
  const ProcessFacts& first = *run.trained().front();
  judge_switches(first, out);
  judge_variables(first, out);
  judge_operators(run, again, out);
  judge_compiler(first, out);
  judge_ranks(run, out);
}

}  // namespace opguard
