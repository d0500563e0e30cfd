// opguard export LOG -o FILE.parquet, or --dataset DIR: a log's records for other programs.
//
// There is no Parquet library for C++ in Debian: pyarrow writes the files, in an interpreter of the
// user's, from the tables that opguard.read_log makes.
//
//   opguard export run_a/log -o records.parquet        one file
//   opguard export run_a/log --dataset runs            by run, rank and step, beside other runs
//
// Counterexample: --format csv is `dump`. It needs no interpreter.
//
// The cost: of a log in object storage every byte is brought here.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/help_text.h"
#include "session/remote_logs.h"
#include "support/launch.h"
#include "support/package_script.h"
#include "support/url.h"

namespace opguard {
namespace {

struct ExportOptions {
  std::string path;
  std::string out;
  std::string dataset, run;  // a folder of files by run, rank and step; the run's name there
  std::string python = "python3";
  bool events = false;
};

// argv: log, output, "events" or "records", "file" or "dataset", the run's name or "", the log's
// URL or "".
constexpr const char* kExport = R"(
path, out, rows, form, run, shown = sys.argv[1:]
if form == "dataset":
    from opguard import dataset
    written, files, logs = dataset.write(path, out, rows, run, shown)
    print("{}: {:,} {} of {:,} logs in {:,} files".format(out, written, rows, logs, files))
else:
    from opguard import logs
    table = getattr(logs.read_log(path, shown), rows)
    table.to_parquet(out)
    print("{}: {:,} {}".format(out, len(table), rows))
)";

int export_log(const ExportOptions& options) {
  auto remote = RemoteLogs::open({options.path}, options.python);
  if (!remote) return fail(llvm::toString(remote.takeError()));
  if (std::string why = (*remote)->bring_all(options.path); !why.empty()) return fail(why);
  const std::string path = (*remote)->here(options.path);
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return fail(path + ": no such file or folder");
  LaunchOptions launched;
  launched.command = package_command(
      options.python, kExport,
      {path, options.dataset.empty() ? options.out : options.dataset,
       options.events ? "events" : "records", options.dataset.empty() ? "file" : "dataset",
       options.run, is_url(options.path) ? url_name(options.path) : ""});
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
      "export", "Write the records of a log, or of a folder of logs, as Parquet");
  describe(*command, {"",
                      {"opguard export run_a/log -o records.parquet",
                       "opguard export run_a/log --dataset runs"}});
  command
      ->add_option("LOG", options->path,
                   "Log or folder of logs; or s3://, gs://, hdfs:// (opguard help objectstorage)")
      ->required();
  CLI::Option* file =
      command->add_option("-o,--output", options->out, "The Parquet file")->type_name("FILE");
  CLI::Option* dataset =
      command
          ->add_option("--dataset", options->dataset,
                       "Add the run to a folder of Parquet files by run, rank and step instead "
                       "(opguard help reading)")
          ->type_name("DIR")
          ->excludes(file);
  command->add_option("--run", options->run, "The run's name in the dataset [its folder's]")
      ->type_name("NAME")
      ->needs(dataset);
  command->add_flag("--events", options->events, "Write a row an event, not a record");
  command->add_option("--python", options->python, "Interpreter that has pyarrow [python3]")
      ->type_name("PYTHON");
  command->callback([options, &run] {
    if (options->out.empty() && options->dataset.empty())
      throw CLI::RequiredError("--output or --dataset");
    run = [options] { return export_log(*options); };
  });
}

}  // namespace opguard
