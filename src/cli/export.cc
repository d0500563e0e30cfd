// opguard export LOG -o FILE.parquet: a log's records for other programs.
//
// There is no Parquet library for C++ in Debian: pyarrow writes the file, in an interpreter of the
// user's, from the tables that opguard.read_log makes.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/help_text.h"
#include "support/install.h"
#include "support/launch.h"

namespace opguard {
namespace {

struct ExportOptions {
  std::string path;
  std::string out;
  std::string python = "python3";
  bool events = false;
};

// argv: the folder of our package, log, output, "events" or "records". The package is loaded by its
// path: nothing that lies beside it becomes importable. Nor does what
// lies in the working directory.
constexpr const char* kExport = R"(
import sys
sys.path[:] = [p for p in sys.path if p]
import importlib.util, os, warnings
package, path, out, rows = sys.argv[1:]
spec = importlib.util.spec_from_file_location("opguard", os.path.join(package, "__init__.py"), submodule_search_locations=[package])
sys.modules["opguard"] = module = importlib.util.module_from_spec(spec)
warnings.showwarning = lambda message, *_, **__: sys.stderr.write("opguard: warning: %s\n" % message)
try:
    spec.loader.exec_module(module)
    log = module.read_log(path)
    table = getattr(log, rows)
    table.to_parquet(out)
except (ImportError, OSError, ValueError) as error:
    sys.exit("opguard: error: %s" % error)
print("{}: {:,} {}".format(out, len(table), rows))
)";

int export_log(const ExportOptions& options) {
  std::error_code code;
  if (!std::filesystem::exists(options.path, code))
    return fail(options.path + ": no such file or folder");
  LaunchOptions launched;
  launched.command = {options.python,
                      "-c",
                      kExport,
                      python_package_dir(),
                      options.path,
                      options.out,
                      options.events ? "events" : "records"};
  launched.environment = {{"PYTHONDONTWRITEBYTECODE", "1"}};
  auto result = launch(launched);
  if (!result) return fail(llvm::toString(result.takeError()));
  if (result->exit_code == 0 && result->signal == 0) return kYes;
  // It has told why itself, unless a signal ended it.
  return result->signal == 0 ? kCouldNotTell : fail(options.python + ": " + result->failure());
}

}  // namespace

void add_export(CLI::App& app, Pipeline& run) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand(
      "export", "Write the records of a log, or of a folder of logs, to a Parquet file");
  describe(*command, {"", {"opguard export run_a/log -o records.parquet"}});
  command->add_option("LOG", options->path, "Log or folder of logs")->required();
  command->add_option("-o,--output", options->out, "The Parquet file")
      ->type_name("FILE")
      ->required();
  command->add_flag("--events", options->events, "Write a row an event, not a record");
  command->add_option("--python", options->python, "Interpreter that has pyarrow [python3]")
      ->type_name("PYTHON");
  command->callback([options, &run] { run = [options] { return export_log(*options); }; });
}

}  // namespace opguard
