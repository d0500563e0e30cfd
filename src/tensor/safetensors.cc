// A file is believed only if its tensors cover it, byte by byte, without gap or overlap.
//
//   8 bytes       72, the length of the header
//   72 bytes      the header (safetensors_header.h): x [0, 24], y [24, 32]
//   32 bytes      x, then y, then the end of the file
//
// Counterexample: y at [20, 32] would be read without fault, and would hold the end of x. It is
// refused: "tensor 'y' does not begin where the one before it ends (byte 24)".
//
// The file is mapped, so to open one of gigabytes costs its header. It is written under a name of
// its own and renamed, so that nobody finds half a file.
#include "tensor/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>

#include "tensor/safetensors_header.h"

namespace opguard {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;  // bytes; the limit of safetensors' own reader
constexpr std::string_view kDtypeKey = "dtype:";

uint64_t little_endian(const unsigned char* bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | bytes[i];
  return value;
}

// False where the product does not fit 64 bits. A shape with a 0 in it has no bytes, however large
// its other dims are.
bool bytes_of(const std::vector<int64_t>& shape, uint64_t size, uint64_t& bytes) {
  bytes = size;
  bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (int64_t d : shape)
    if (!empty && __builtin_mul_overflow(bytes, static_cast<uint64_t>(d), &bytes)) return false;
  if (empty) bytes = 0;
  return true;
}

bool write_all(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    ssize_t n = ::write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

SafetensorsFile::~SafetensorsFile() {
  if (mapped_ != nullptr) munmap(mapped_, size_bytes_);
}

bool SafetensorsFile::open(const std::string& path, std::string& error) {
  tensors_.clear();
  metadata_.clear();
  if (mapped_ != nullptr) munmap(mapped_, size_bytes_);
  mapped_ = nullptr;
  auto fail = [&](const std::string& why) {
    error = path + ": " + why;
    tensors_.clear();
    metadata_.clear();
    return false;
  };
  // O_NONBLOCK: a pipe of that name would be waited for, and is refused below.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail(std::strerror(errno));
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return fail("not a file");
  }
  size_bytes_ = static_cast<size_t>(info.st_size);
  if (size_bytes_ < 8) {
    ::close(fd);
    return fail("not a safetensors file: shorter than its first 8 bytes");
  }
  void* mapped = mmap(nullptr, size_bytes_, PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (mapped == MAP_FAILED) return fail(std::strerror(errno));
  mapped_ = mapped;
  std::string why;
  const bool whole = read(why);
  if (!whole) fail(why);
  index();
  return whole;
}

bool SafetensorsFile::read(std::string& error) {
  const auto* file = static_cast<const unsigned char*>(mapped_);
  const uint64_t length = little_endian(file);
  if (length > kMaxHeader || length > size_bytes_ - 8) {
    error = "not a safetensors file: a header of " + std::to_string(length) +
            " bytes in a file of " + std::to_string(size_bytes_);
    return false;
  }
  std::vector<StoredTensor> stored;
  std::string_view text(reinterpret_cast<const char*>(file) + 8, length);
  if (!parse_header(text, stored, metadata_, error)) return false;
  const unsigned char* data = file + 8 + length;
  const uint64_t data_bytes = size_bytes_ - 8 - length;
  std::stable_sort(stored.begin(), stored.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  for (StoredTensor& s : stored) {
    auto fail = [&](const std::string& what) {
      error = "tensor '" + printable(s.name) + "' " + what;
      return false;
    };
    if (s.begin != at || s.end < s.begin)
      return fail("does not begin where the one before it ends (byte " + std::to_string(at) + ")");
    if (s.end > data_bytes)
      return fail("ends at byte " + std::to_string(s.end) + " of " + std::to_string(data_bytes));
    at = s.end;
    const Dtype* dtype = dtype_stored(s.dtype);
    if (dtype == nullptr) return fail("has the unknown dtype '" + printable(s.dtype) + "'");
    uint64_t bytes = 0;
    if (!bytes_of(s.shape, dtype->size_bytes, bytes) || bytes != s.end - s.begin)
      return fail("has a shape that does not fit its " + std::to_string(s.end - s.begin) +
                  " bytes");
    auto told = metadata_.find(std::string(kDtypeKey) + s.name);
    // Where the metadata does not fit (another dtype, another last dim) it is nobody's, and the
    // bytes are bytes.
    const Dtype* meant = told == metadata_.end() ? nullptr : dtype_named(told->second);
    if (meant != nullptr && s.dtype == "U8" && !s.shape.empty() &&
        s.shape.back() == meant->size_bytes) {
      dtype = meant;
      s.shape.pop_back();
    }
    tensors_.push_back({std::move(s.name), dtype, std::move(s.shape), data + s.begin});
  }
  if (at != data_bytes) {
    error = std::to_string(data_bytes - at) + " bytes at the end belong to no tensor";
    return false;
  }
  return true;
}

void SafetensorsFile::index() {
  by_name_.clear();
  by_kind_.clear();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const std::string_view own = tensors_[i].name;
    by_name_.try_emplace(own, i);
    for (std::string_view kind : {"in/", "out/", "written/"}) {
      if (!own.starts_with(kind)) continue;
      auto [at, fresh] = by_kind_.try_emplace(own.substr(kind.size()), i);
      if (!fresh) at->second = kAmbiguous;
    }
  }
}

const Tensor* SafetensorsFile::find(std::string_view name) const {
  if (const Tensor* exact = named(name)) return exact;
  const auto found = by_kind_.find(name);
  return found == by_kind_.end() || found->second == kAmbiguous ? nullptr
                                                                : &tensors_[found->second];
}

const Tensor* SafetensorsFile::named(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

bool write_safetensors(const std::string& path, const std::vector<Tensor>& tensors,
                       const TensorMetadata& metadata, std::string& error) {
  // The widest first, as safetensors does, so that every tensor is aligned to its element.
  std::vector<const Tensor*> order;
  for (const Tensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const Tensor* a, const Tensor* b) {
    auto width = [](const Tensor* t) { return t->dtype->stored[0] ? t->dtype->size_bytes : 1; };
    return width(a) > width(b);
  });
  TensorMetadata told = metadata;
  std::vector<StoredTensor> stored;
  uint64_t at = 0;
  for (const Tensor* tensor : order) {
    StoredTensor s{tensor->name, tensor->dtype->stored, tensor->shape, at, 0};
    if (s.dtype.empty()) {
      s.dtype = "U8";
      s.shape.push_back(tensor->dtype->size_bytes);
      told[std::string(kDtypeKey) + tensor->name] = tensor->dtype->name;
    }
    at = s.end = at + tensor->size_bytes();
    stored.push_back(std::move(s));
  }
  std::string header = format_header(stored, told);
  header.resize((header.size() + 7) / 8 * 8, ' ');  // the data begins aligned
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(header.size() >> (8 * i));

  const std::string unfinished = path + ".incomplete";
  auto fail = [&](int fd) {
    error = path + ": " + std::strerror(errno);
    if (fd >= 0) {
      ::close(fd);
      ::unlink(unfinished.c_str());
    }
    return false;
  };
  int fd = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return fail(fd);
  bool whole = write_all(fd, length, sizeof length) && write_all(fd, header.data(), header.size());
  for (const Tensor* tensor : order)
    whole = whole && write_all(fd, tensor->data, tensor->size_bytes());
  if (!whole) return fail(fd);
  if (::close(fd) != 0 || ::rename(unfinished.c_str(), path.c_str()) != 0) {
    error = path + ": " + std::strerror(errno);
    ::unlink(unfinished.c_str());
    return false;
  }
  return true;
}

}  // namespace opguard
