// reading/arrow.h: a LogTable through Arrow's C data and C stream interfaces, without Arrow.
//
//   export_stream(table, {step, dtype}, &stream)
//   stream.get_next(&stream, &array)    a struct array of 4,096 rows, children step and dtype
//   array.release(&array)               by whoever took it; get_next gives the next 4,096
//
// The structures are Arrow's stable ABI, passed between libraries of one process by pointer; who
// holds one calls its `release` when done. Numbers, texts and validity are Arrow's own layouts:
// boolean b, i32 i, u32 I, u64 and hash L, text dictionary(int32, utf8), shape list<int64>.
//
// Counterexample: to link Arrow. pyarrow, polars and duckdb each bring their own, and all of them
// read this.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reading/columns.h"

extern "C" {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

}  // extern "C"

namespace opguard {

// Rows handed over at once: what is in memory twice while a stream is read.
inline constexpr uint64_t kBatchRows = 1 << 12;

// columns: some of table.columns(), in any order. Throws std::bad_alloc.
void export_schema(const std::vector<const Column*>& columns, ArrowSchema* out);

// The stream's functions may be called by any thread, without the GIL, one at a time.
// The stream keeps the table alive, and itself until `release`.
void export_stream(std::shared_ptr<const LogTable> table, std::vector<const Column*> columns,
                   ArrowArrayStream* out);

}  // namespace opguard
