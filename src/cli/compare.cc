// opguard compare A.safetensors B.safetensors [--json FILE]
//
// Two files that --capture has written, or any two of that format. No log and no run is needed, so
// the whole command is here and not in src/session. How far tensors differ is measured in
// src/tensor.
//
// Counterexample: two folders of captures. Which file belongs to which is a question of pairing
// events: `align`.
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "nlohmann/json.hpp"
#include "report/identity.h"
#include "report/tensor_json.h"
#include "support/write_file.h"
#include "tensor/compare.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

struct CompareCommand {
  std::string a, b, json;
};

std::string json_text(const FileComparison& comparison) {
  Json json = identity_json(identity_now());
  json["equal"] = comparison.equal();
  json["tensors"] = Json::array();
  for (const Difference& d : comparison.tensors) json["tensors"].push_back(difference_json(d));
  json["only_a"] = comparison.only_a;
  json["only_b"] = comparison.only_b;
  // Names come from files of others: what is no UTF-8 is replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

int compare(const CompareCommand& opt) {
  SafetensorsFile a, b;
  std::string error;
  if (!a.open(opt.a, error) || !b.open(opt.b, error)) return fail(error);
  const FileComparison comparison = compare_files(a, b);
  if (!opt.json.empty())
    if (llvm::Error failed = write_file(opt.json, json_text(comparison)))
      return fail(llvm::toString(std::move(failed)));
  const std::string text = format_comparison(comparison, opt.a, opt.b);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return comparison.equal() ? kYes : kNo;
}

}  // namespace

void add_compare(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<CompareCommand>();
  CLI::App* command = app.add_subcommand(
      "compare",
      "Tell how the tensors of two files differ: where, how far, which change explains it");
  describe(*command, {"", {"opguard compare a.safetensors b.safetensors"}});
  command->add_option("FILE_A", opt->a, "A safetensors file, as --capture writes")->required();
  command->add_option("FILE_B", opt->b, "The file to compare with it")->required();
  command->add_option("--json", opt->json, "Write the answer to this file, for programs")
      ->type_name("FILE");
  command->footer("Exits with 0 if every tensor is equal, 1 if not, 2 if a file cannot be read.");
  command->callback([opt, &run] { run = [opt] { return compare(*opt); }; });
}

}  // namespace opguard
