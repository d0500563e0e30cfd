// record/elsewhere.h: a folder that lies elsewhere, and its files here, with what was brought.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "record/bring.h"

namespace opguard {

class Elsewhere {
 public:
  // Each file of `there` stands here with its size, and without its content.
  Elsewhere(const std::filesystem::path& there, const std::filesystem::path& here)
      : there_(there), here_(here) {
    std::filesystem::create_directories(here);
    for (const auto& file : std::filesystem::directory_iterator(there)) {
      const std::filesystem::path copy = here / file.path().filename();
      std::ofstream(copy).close();
      std::filesystem::resize_file(copy, file.file_size());
      size_ += file.file_size();
    }
  }

  // "": not one of these files.
  std::string there(const std::string& path) const {
    const std::filesystem::path name = std::filesystem::path(path).lexically_relative(here_);
    return name.empty() || *name.begin() == ".." ? "" : (there_ / name).string();
  }

  void bring(const FilePiece& piece) {
    std::ifstream from(there(piece.path), std::ios::binary);
    from.seekg(static_cast<std::streamoff>(piece.at));
    const uint64_t size = std::filesystem::file_size(piece.path);
    std::string bytes(std::min(piece.bytes, size - std::min(size, piece.at)), '\0');
    from.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::fstream to(piece.path, std::ios::binary | std::ios::in | std::ios::out);
    to.seekp(static_cast<std::streamoff>(piece.at));
    to.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::vector<bool>& brought = brought_[piece.path];
    brought.resize(size);
    std::fill_n(brought.begin() + static_cast<std::ptrdiff_t>(std::min(piece.at, size)),
                bytes.size(), true);
  }

  uint64_t size() const { return size_; }
  // Bytes, each once.
  uint64_t brought() const {
    uint64_t bytes = 0;
    for (const auto& [path, brought] : brought_)
      bytes += static_cast<uint64_t>(std::count(brought.begin(), brought.end(), true));
    return bytes;
  }

 private:
  std::filesystem::path there_, here_;
  uint64_t size_ = 0;
  std::map<std::string, std::vector<bool>> brought_;
};

}  // namespace opguard
