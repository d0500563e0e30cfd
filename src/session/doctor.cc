// The interpreter is started as a recorded program is, below our boot folder, and asked in its own
// words. The questions are one script, and the answers one line of JSON behind a mark. A question
// whose answer is an exception is an answer too ("torch_error"), so that one fault does not hide
// the others.
//
// Counterexample: to import torch here and ask it. This process has no Python, and another
// interpreter's torch would be another torch.
//
// The cost: an import of torch; a command has at most 120 s.
#include "session/doctor.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "nlohmann/json.hpp"
#include "preflight/reach.h"
#include "support/exit_code.h"
#include "support/install.h"
#include "support/launch.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Run by the program's interpreter, below our boot folder; one line of JSON after a mark of its
// own, since a sitecustomize may print.
constexpr char kMark[] = "opguard-doctor:";
constexpr char kQuestions[] = R"(
import json, sys
found = {"python": sys.version.split()[0], "executable": sys.executable}
try:
    import opguard
    found["booted"] = opguard.__file__
    found["probe"] = opguard.og("doctor:test", len)([1, 2]) == 2
    found["extension"] = getattr(sys.modules.get("opguard._rt"), "__file__", "")
except BaseException as error:
    found["probe_error"] = "%s: %s" % (type(error).__name__, error)
try:
    import torch
    found["torch"] = str(torch.__version__)
    found["cuda"] = str(torch.version.cuda or "")
    found["gpus"] = torch.cuda.device_count() if torch.cuda.is_available() else 0
    from opguard import _rt
    try:
        found["values_error"] = _rt.device("cuda")
        if found["gpus"] and not found["values_error"]:
            x = torch.arange(100000, device="cuda")
            if _rt.read_on_device(x) != _rt.fingerprint(x.cpu()):
                found["values_error"] = "the GPU's fingerprint is not the processor's: please report this"
    except RuntimeError as error:
        found["values_error"] = str(error)
    try:
        import torch._dynamo
        from opguard.compiled import probes
        found["compile_problem"] = probes.problem()
    except Exception as error:
        found["compile_problem"] = "%s: %s" % (type(error).__name__, error)
    import ctypes
    from opguard.load import startup
    from opguard.trace import cuda
    said = ctypes.create_string_buffer(4096)
    inject = ctypes.CDLL(cuda.INJECT)
    files = "\n".join(cuda.cupti_files(torch, startup.options)).encode()
    inject.opguard_inject_try.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64]
    found["cupti"] = bool(inject.opguard_inject_try(files, said, len(said)))
    found["cupti_said"] = said.value.decode(errors="replace")
except BaseException as error:
    found["torch_error"] = "%s: %s" % (type(error).__name__, error)
print("opguard-doctor:" + json.dumps(found))
)";

// A line is printed as soon as its check is made: what hangs is then the one behind the last line.
class Checks {
 public:
  void good(const std::string& what, const std::string& how) { line("ok", what, how); }
  // Something that only some uses need.
  void without(const std::string& what, const std::string& why) { line("-", what, why); }
  void bad(const std::string& what, const std::string& why) {
    line("NO", what, why);
    works_ = false;
  }
  bool works() const { return works_; }

 private:
  void line(const char* mark, const std::string& what, const std::string& how) {
    std::printf("%-3s %-18s %s\n", mark, what.c_str(), how.c_str());
  }
  bool works_ = true;
};

LaunchOptions silent(std::vector<std::string> command) {
  LaunchOptions options;
  options.command = std::move(command);
  options.output = Output::capture;
  options.timeout_s = 120;
  return options;
}

// First line of what a command says, "" if it fails.
std::string first_output_line(std::vector<std::string> command) {
  llvm::Expected<LaunchResult> ran = launch(silent(std::move(command)));
  if (!ran) {
    llvm::consumeError(ran.takeError());
    return "";
  }
  if (!ran->failure().empty()) return "";
  return ran->output.substr(0, ran->output.find('\n'));
}

// "12.8"; "" and why not.
std::string driver_version(std::string& why) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    const char* error = dlerror();
    why = error ? error : "not loaded";
    return "";
  }
  auto ask = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  if (!ask || ask(&version) != 0) why = "libcuda.so.1 does not say its version";
  // Never unloaded: the driver keeps threads.
  return why.empty() ? std::to_string(version / 1000) + "." + std::to_string(version / 10 % 100)
                     : "";
}

std::string text(const json& found, const char* key) {
  auto it = found.find(key);
  return it != found.end() && it->is_string() ? it->get<std::string>() : "";
}

std::vector<std::string> asked_interpreter(const DoctorOptions& opt) {
  if (!opt.python.empty()) return opt.python;
  for (const char* name : {"python", "python3"})
    if (!first_output_line({name, "--version"}).empty()) return {name};
  return {"python3"};
}

// Fingerprints of tensors on CUDA: by this build and driver, for this torch.
void check_values(const json& found, Checks& report) {
  auto error = found.find("values_error");
  if (error == found.end()) return;
  const std::string why = text(found, "values_error");
  const int gpus = found.value("gpus", 0);
  if (why.empty())
    report.good("values on CUDA", gpus > 0 ? "a tensor on cuda:0 was read as the processor reads it"
                                           : "the driver takes the kernels; torch sees no GPU");
  else if (gpus > 0)
    report.bad("values on CUDA", why);
  else
    report.without("values on CUDA", why);
}

// A torch newer than all that were tried, or of which a part that is needed is elsewhere.
void check_compile(const json& found, Checks& report) {
  if (!found.contains("compile_problem")) return;
  const std::string why = text(found, "compile_problem");
  if (why.empty())
    report.good("torch.compile", "compiled code is recorded; Inductor makes other kernels under probes, "
                                 "whose last bits may differ from the bare run's");
  else
    report.without("torch.compile", why + "; compiled code runs as without opguard, unrecorded");
}

// The interpreter, its torch, and our probe in it. Variables of a recording around us are taken
// away.
void check_program(const DoctorOptions& opt, Checks& report) {
  std::vector<std::string> command = asked_interpreter(opt);
  std::string name = quote(command);
  command.insert(command.end(), {"-c", kQuestions});
  LaunchOptions options = silent(command);
  options.environment = own_run_environment();
  options.environment.emplace_back("OPGUARD_MODE", "full");
  for (const char* other :
       {"OPGUARD_TRACE", "OPGUARD_LOG", "OPGUARD_HOOK", "OPGUARD_DETERMINISTIC"})
    options.environment.emplace_back(other, "");
  llvm::Expected<LaunchResult> ran = launch(options);
  if (!ran) {
    report.bad("python", llvm::toString(ran.takeError()));
    return;
  }
  size_t at = ran->output.rfind(kMark);
  json found;
  if (at != std::string::npos)
    found = json::parse(ran->output.substr(at + sizeof kMark - 1), nullptr, false);
  if (!found.is_object()) {
    std::string why = ran->failure();
    report.bad("python",
               name + ": " + (why.empty() ? "no answer" : why) + "\n" + last_lines(ran->output, 5));
    return;
  }
  report.good("python", text(found, "python") + "  " + text(found, "executable"));
  if (!text(found, "torch").empty()) {
    std::string cuda = text(found, "cuda");
    report.good("torch", text(found, "torch") +
                             (cuda.empty() ? ", built without CUDA" : ", CUDA " + cuda) + ", " +
                             std::to_string(found.value("gpus", 0)) + " GPUs");
  } else {
    report.bad("torch", text(found, "torch_error"));
  }
  check_compile(found, report);
  check_values(found, report);
  if (found.value("cupti", false))
    report.good("CUPTI", text(found, "cupti_said"));
  else if (!text(found, "torch").empty())
    report.without("CUPTI", text(found, "cupti_said") +
                                "; kernels are seen by interception, without a GPU not at all");
  if (!text(found, "probe_error").empty())
    report.bad("probe", text(found, "probe_error"));
  else if (!found.value("probe", false))
    report.bad("probe", "it changed the result of the function it wrapped");
  else
    report.good("probe", text(found, "extension").empty() ? text(found, "booted")
                                                          : text(found, "extension"));
  // -E and -I, a sitecustomize that does not chain, or an interpreter started by a wrapper.
  std::error_code ec;
  fs::path booted = fs::path(text(found, "booted")).parent_path();
  if (!booted.empty() && !fs::equivalent(booted, python_package_dir(), ec))
    report.bad("boot", "the interpreter has another opguard: " + booted.string());
}

// What no interpreter tells: the driver, compilers, git. None of these is needed by all uses.
void check_machine(Checks& report) {
  std::string why, version = driver_version(why);
  if (!version.empty())
    report.good("CUDA driver", "libcuda.so.1, for CUDA up to " + version);
  else
    report.without("CUDA driver", why + "; tensors on the CPU only");
  for (const char* compiler : {"c++", "nvcc"}) {
    std::string version = first_output_line({compiler, "--version"});
    if (version.empty())
      report.without(compiler, "not on PATH; needed only to build opguard or by torch.compile");
    else
      report.good(compiler, version);
  }
  std::string git = first_output_line({"git", "--version"});
  if (git.empty())
    report.without("git", "not on PATH; diff --git reads repositories without it");
  else
    report.good("git", git);
}

}  // namespace

int doctor(const DoctorOptions& opt) {
  Checks report;
  std::error_code ec;
  std::string package = python_package_dir(), templates = templates_dir();
  if (fs::exists(package + "/boot/sitecustomize.py", ec))
    report.good("package", package);
  else
    report.bad("package", package + " is not there: the build or the installation is not whole");
  if (fs::is_directory(templates, ec))
    report.good("templates", templates);
  else
    report.bad("templates", templates + " is not there");
  check_program(opt, report);
  check_machine(report);
  std::printf(report.works() ? "opguard works with this interpreter.\n"
                             : "opguard does not work with this interpreter: see NO above.\n");
  return report.works() ? kYes : kNo;
}

}  // namespace opguard
