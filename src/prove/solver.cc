#include "prove/solver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <type_traits>

namespace opguard::proving {

// Of z3_api.h; these have not changed since 4.4.
struct Z3Config;
struct Z3Context;
using Z3ErrorHandler = void(Z3Context*, int);

namespace {

constexpr const char* kMegabytes = "1500";
constexpr const char* kMilliseconds = "20000";

// Z3's own handler ends the process.
void ignore_error(Z3Context*, int) {}

}  // namespace

// The eight functions of Z3's C API that are used, found by name. No header of Z3's is needed to
// build.
struct Solver::Library {
  void* handle = nullptr;
  Z3Config* (*mk_config)() = nullptr;
  void (*del_config)(Z3Config*) = nullptr;
  void (*global_param_set)(const char*, const char*) = nullptr;
  Z3Context* (*mk_context)(Z3Config*) = nullptr;
  void (*del_context)(Z3Context*) = nullptr;
  void (*set_error_handler)(Z3Context*, Z3ErrorHandler*) = nullptr;
  const char* (*eval_smtlib2_string)(Z3Context*, const char*) = nullptr;
  void (*get_version)(unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;

  bool load(const char* path) {
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return false;
    bool found = true;
    const auto take = [&](auto& function, const char* name) {
      void* symbol = dlsym(handle, name);
      found = found && symbol != nullptr;
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
    };
    take(mk_config, "Z3_mk_config");
    take(del_config, "Z3_del_config");
    take(global_param_set, "Z3_global_param_set");
    take(mk_context, "Z3_mk_context");
    take(del_context, "Z3_del_context");
    take(set_error_handler, "Z3_set_error_handler");
    take(eval_smtlib2_string, "Z3_eval_smtlib2_string");
    take(get_version, "Z3_get_version");
    return found;
  }
};

// The library stays loaded: its own threads and statics would not survive an unloading.
Solver::~Solver() = default;

Solver::Solver(std::unique_ptr<Library> library) : library_(std::move(library)) {
  unsigned major = 0, minor = 0, build = 0, revision = 0;
  library_->get_version(&major, &minor, &build, &revision);
  version_ = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(build);
  library_->global_param_set("memory_max_size", kMegabytes);
}

std::unique_ptr<Solver> Solver::find(const std::string& library) {
  auto found = std::make_unique<Library>();
  const bool loaded = library.empty() ? found->load("libz3.so.4") || found->load("libz3.so")
                                      : found->load(library.c_str());
  if (!loaded) return nullptr;
  return std::unique_ptr<Solver>(new Solver(std::move(found)));
}

// A context for each question, so that none depends on those before it.
SolverReply Solver::ask(const std::string& question, uint64_t steps) {
  Z3Config* config = library_->mk_config();
  Z3Context* context = library_->mk_context(config);
  library_->del_config(config);
  if (context == nullptr) return {Satisfiable::undecided, "Z3 makes no context"};
  library_->set_error_handler(context, ignore_error);
  const auto said = [&](const std::string& script) {
    const char* text = library_->eval_smtlib2_string(context, script.c_str());
    std::string line = text == nullptr ? "" : text;
    while (line.ends_with('\n')) line.pop_back();
    return line;
  };
  // As options of the text: those of a context are not heard by what evaluates it.
  const std::string limits = "(set-option :rlimit " + std::to_string(steps) +
                             ")\n(set-option :timeout " + kMilliseconds + ")\n";
  SolverReply reply;
  // What Z3 does not understand it passes over, with a complaint, and then answers what nobody
  // asked. So its answer counts only where it is all that was said.
  reply.said = said(limits + "(set-logic QF_NRA)\n" + question + "\n(check-sat)\n");
  if (reply.said == "unsat") reply.answer = Satisfiable::none;
  if (reply.said == "sat") reply.answer = Satisfiable::some;
  if (reply.answer != Satisfiable::undecided) reply.said.clear();
  if (reply.said == "unknown") reply.said = said("(get-info :reason-unknown)\n");
  // "(:rlimit 6567)"
  const std::string taken = said("(get-info :rlimit)\n");
  if (const size_t at = taken.find_first_of("0123456789"); at != std::string::npos)
    reply.steps = std::strtoull(taken.c_str() + at, nullptr, 10);
  library_->del_context(context);
  return reply;
}

}  // namespace opguard::proving
