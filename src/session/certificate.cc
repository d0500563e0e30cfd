// Two parts of a digest, since they are known at two times. The key is known before anything runs,
// and finds the certificate: the check, its commands, the base, opguard itself, the machine and the
// environment. The files are known behind the run only, and are looked at one by one when the
// certificate is found.
//
//   key of today = key of then     certificates/5c0d....json is opened
//   every file as it was           certified: nothing runs
//   model.py has another digest    the check runs, and writes a certificate under the same key
//
// Counterexample: a Python file that is new. No list of files has it, and it may be imported: so
// the names of all Python files are a digest of their own (modules).
//
// The cost: each named file is read and digested once a call; the tree's Python files are listed.
#include "session/certificate.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>

#include "llvm/Support/Program.h"
#include "nlohmann/json.hpp"
#include "report/identity.h"
#include "session/program_texts.h"
#include "support/source.h"
#include "support/version.h"
#include "support/write_file.h"

extern char** environ;

namespace opguard {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What changes arithmetic or what is imported. Others (a job's number, a terminal) do not count.
constexpr std::string_view kVariables[] = {"CUDA_",   "CUBLAS_", "CUDNN_",  "MKL_",   "NCCL_",
                                           "NVIDIA_", "OMP_",    "PYTORCH", "PYTHON", "TORCH"};

// "" where there is none: then no JSON, and no certificate.
std::string whole_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The names of installed distributions tell their versions: "torch-2.13.0.dist-info".
// Names of what lies in site-packages; not the files in it, which may be thousands.
void add_distributions(const fs::path& prefix, std::set<std::string>& names) {
  std::error_code error;
  for (const char* library : {"lib", "lib64"})
    for (fs::directory_iterator it(prefix / library, error), end; !error && it != end;
         it.increment(error)) {
      if (!it->path().filename().string().starts_with("python")) continue;
      std::error_code none;
      for (fs::directory_iterator package(it->path() / "site-packages", none);
           !none && package != end; package.increment(none))
        if (const std::string name = package->path().filename().string();
            name.ends_with(".dist-info") || name.ends_with(".egg-link") || name.ends_with(".pth"))
          names.insert(name);
    }
}

// The first processor's model: another one may choose other kernels.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line;
  return "";
}

// Programs that the command may run: each word that PATH knows, and python itself.
std::set<std::string> programs_of(const std::string& command) {
  std::set<std::string> programs;
  std::string word;
  auto add = [&](const std::string& name) {
    if (name.empty()) return;
    if (const auto found = llvm::sys::findProgramByName(name)) programs.insert(*found);
  };
  for (const char c : command + " ") {
    if (c != ' ' && c != '\t' && c != '\n' && c != '\'' && c != '"' && c != ';' && c != '&') {
      word += c;
      continue;
    }
    add(word);
    word.clear();
  }
  add("python");
  return programs;
}

// "" where the tree cannot be read.
std::string modules_digest(const std::string& tree) {
  auto sources = read_sources({{"", tree, ""}});
  if (!sources) {
    llvm::consumeError(sources.takeError());
    return "";
  }
  std::string names;
  for (const SourceFile& file : sources->files) names += file.name + "\n";
  return digest_of(names);
}

// Below the tree its name there, else its path.
std::string input_name(const std::string& tree, const std::string& path) {
  return path.starts_with(tree + "/") ? path.substr(tree.size() + 1) : path;
}

// With its length before it: "ab", "c" and "a", "bc" are not the same.
void add_text(std::string& all, const std::string& part) {
  all += std::to_string(part.size()) + ":" + part;
}

std::string certificate_path(const std::string& store, const std::string& key) {
  return store + "/certificates/" + key + ".json";
}

}  // namespace

std::string environment_digest(const std::string& command) {
  std::string all = processor();
  std::set<std::string> names;
  for (const std::string& program : programs_of(command)) {
    all += "\n" + program;
    add_distributions(fs::path(program).parent_path().parent_path(), names);
  }
  for (const std::string& name : names) all += "\n" + name;
  std::set<std::string> variables;
  for (char** variable = environ; *variable; ++variable)
    for (const std::string_view prefix : kVariables)
      if (std::string_view(*variable).starts_with(prefix)) variables.insert(*variable);
  for (const std::string& variable : variables) all += "\n" + variable;
  return digest_of(all);
}

std::string certificate_key(const Check& check, const std::string& base) {
  std::string all;
  for (const std::string& part :
       {std::string(version()), std::string(commit()), check.name,
        std::string(kind_name(check.kind)), std::string(tier_name(check.tier)), check.command,
        check.first, check.then, check.many, base, std::to_string(check.deterministic),
        std::to_string(check.seed), environment_digest(check.command)})
    add_text(all, part);
  for (const std::string& package : check.packages) add_text(all, package);
  return digest_of(all);
}

llvm::Error note_inputs(const RecordedSide& side, Certificate& certificate) {
  std::set<std::string> paths;
  for (const SourceFile& file : side.survey.sources.files) paths.insert(file.path);
  for (const std::string& path : read_files(side.side.work + "/trace"))
    if (path.starts_with(side.side.tree + "/")) paths.insert(path);
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) continue;  // the program's own, and gone
    auto digest = digest_of_file(path);
    if (!digest) return digest.takeError();
    certificate.files.push_back(
        {input_name(side.side.tree, path), uint64_t(fs::file_size(path, error)), *digest});
  }
  certificate.modules = modules_digest(side.side.tree);
  return llvm::Error::success();
}

// In the order of ranks; of losses and optimizer events alone, with the names of their slots.
std::string values_digest(const Run& run) {
  std::set<int32_t> ranks;
  for (const ProcessLog& log : run.processes) ranks.insert(log.rank);
  std::string all;
  for (const int32_t rank : ranks)
    for (const ProcessLog& log : run.processes) {
      if (log.rank != rank) continue;
      for (uint64_t i = 0; i < log.events.size(); ++i) {
        const EventKind kind = log.events.kind(i);
        if (kind != EventKind::loss && kind != EventKind::optimizer) continue;
        const Event event = log.events[i];
        all += std::to_string(rank) + (kind == EventKind::loss ? " loss\n" : " step\n");
        add_text(all, log.text(event.scalars));
        for (const Slot& slot : log.slots_of(event)) {
          add_text(all, log.text(slot.name));
          all.append(reinterpret_cast<const char*>(&slot.value), sizeof slot.value);
        }
      }
    }
  return digest_of(all);
}

std::optional<Certificate> valid_certificate(const std::string& store, const std::string& key,
                                             const std::string& tree) {
  const std::string text = whole_text(certificate_path(store, key));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  Certificate certificate;
  try {
    certificate.key = json.at("key").get<std::string>();
    if (certificate.key != key) return std::nullopt;
    certificate.modules = json.at("modules").get<std::string>();
    certificate.compared = json.at("compared").get<std::string>();
    certificate.sentence = json.at("sentence").get<std::string>();
    certificate.values = json.at("values").get<std::string>();
    certificate.prefix = json.at("certified_prefix").get<uint64_t>();
    for (const Json& file : json.at("files")) {
      const std::string name = file.at(0).get<std::string>();
      const std::string path = name.starts_with("/") ? name : tree + "/" + name;
      auto digest = digest_of_file(path);
      if (!digest) {
        llvm::consumeError(digest.takeError());
        return std::nullopt;
      }
      if (*digest != file.at(1).get<std::string>()) return std::nullopt;
    }
  } catch (const Json::exception&) {
    return std::nullopt;  // damaged: the check runs
  }
  if (modules_digest(tree) != certificate.modules) return std::nullopt;
  return certificate;
}

llvm::Error write_certificate(const Certificate& certificate, const Check& check,
                              const std::string& store) {
  std::error_code error;
  fs::create_directories(store + "/certificates", error);
  if (error) return make_error("cannot make '" + store + "/certificates': " + error.message());
  Json json = identity_json(identity_now());
  json["opguard_certificate"] = 1;
  json["check"] = check.name;
  json["kind"] = kind_name(check.kind);
  json["tier"] = tier_name(check.tier);
  json["key"] = certificate.key;
  json["compared"] = certificate.compared;
  json["sentence"] = certificate.sentence;
  json["certified_prefix"] = certificate.prefix;
  json["values"] = certificate.values;
  json["settings"] = certificate.settings;
  json["modules"] = certificate.modules;
  json["files"] = Json::array();
  for (const FileDigest& file : certificate.files)
    json["files"].push_back(Json::array({file.name, file.digest}));
  return write_file(certificate_path(store, certificate.key),
                    json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace opguard
