/* device/plugin.h: what opguard needs of an accelerator, as a C table that a shared library
 * exports.
 *
 * CUDA's own table is built in (device/cuda.h); OPGUARD_DEVICE_PLUGIN names further libraries, for
 * other torch device types (docs/design/devices.md). A library exports
 *     const opguard_device_plugin* opguard_device_plugin_v1(void);
 * tests/device/ has a whole one. Plain C, no other header of ours: copy this file.
 *
 * Values. The program's thread calls fingerprint() where a tensor is read or left: the library puts
 * the work on that stream and returns without waiting. Each tensor has a ticket; when the device
 * is done with it, a record with that ticket comes out of drain(), in any order, from any thread
 * that calls it (never two at once). No function may synchronise a device, wait for an event or add
 * an order between streams. What cannot be kept (a full ring) is dropped by the library and counted
 * in lost(); it never blocks the device.
 *
 * Graphs. While a stream is captured, capture() is not 0, and a launch becomes part of the graph:
 * its tickets then come out of drain() once for every replay of the graph, none for the capture.
 */
#ifndef OPGUARD_DEVICE_PLUGIN_H
#define OPGUARD_DEVICE_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 2: element_type and digest. A table that says 1 is served as before, without digests. */
#define OPGUARD_DEVICE_ABI 2
#define OPGUARD_DEVICE_OLDEST_ABI 1

/* An element's type, where all zero-or-at-most--1e4 elements would make it an additive mask. */
enum opguard_mask_type {
  OPGUARD_MASK_NONE = 0,
  OPGUARD_MASK_FLOAT16 = 1,
  OPGUARD_MASK_BFLOAT16 = 2,
  OPGUARD_MASK_FLOAT32 = 3,
  OPGUARD_MASK_FLOAT64 = 4
};

/* What the bytes of an element mean, for the layout-free digest (docs/formats/record-format.md).
 * A complex tensor has the type of its parts, two an element; one of quantized integers theirs. */
enum opguard_element_type {
  OPGUARD_ELEMENT_NONE = 0, /* no digest */
  OPGUARD_ELEMENT_BOOL = 1,
  OPGUARD_ELEMENT_UINT8 = 2,
  OPGUARD_ELEMENT_INT8 = 3,
  OPGUARD_ELEMENT_UINT16 = 4,
  OPGUARD_ELEMENT_INT16 = 5,
  OPGUARD_ELEMENT_UINT32 = 6,
  OPGUARD_ELEMENT_INT32 = 7,
  OPGUARD_ELEMENT_UINT64 = 8,
  OPGUARD_ELEMENT_INT64 = 9,
  OPGUARD_ELEMENT_FLOAT16 = 10,
  OPGUARD_ELEMENT_BFLOAT16 = 11,
  OPGUARD_ELEMENT_FLOAT32 = 12,
  OPGUARD_ELEMENT_FLOAT64 = 13,
  OPGUARD_ELEMENT_FLOAT8_E4M3FN = 14,
  OPGUARD_ELEMENT_FLOAT8_E5M2 = 15,
  OPGUARD_ELEMENT_FLOAT8_E4M3FNUZ = 16,
  OPGUARD_ELEMENT_FLOAT8_E5M2FNUZ = 17,
  OPGUARD_ELEMENT_FLOAT8_E8M0FNU = 18,
  OPGUARD_ELEMENT_FLOAT4X2 = 19 /* float4_e2m1fn_x2: two in a byte */
};

typedef struct opguard_tensor {
  const void* data;       /* first element in logical order, on the device */
  uint32_t element_bytes; /* 1 to 16 */
  uint16_t mask_type;     /* enum opguard_mask_type */
  uint16_t element_type;  /* enum opguard_element_type; 0 for a table that says ABI 1 */
  uint32_t dims;          /* 0 to 64 */
  const int64_t* shape;   /* dims elements; read before fingerprint() returns */
  const int64_t* strides; /* the same, in bytes; 0 for an expanded dimension */
  uint64_t ticket;        /* not 0 */
} opguard_tensor;

/* One tensor's fingerprint, 72 bytes: og1 and its companions, docs/formats/record-format.md. */
typedef struct opguard_value {
  uint64_t ticket;
  uint64_t h, m;
  uint64_t flat;
  uint64_t pattern;  /* meaningful where bit 0 of flags is set: an additive mask */
  uint64_t start_ns; /* the device's clock when the work on it began (CUDA: %globaltimer) */
  uint64_t end_ns;   /* and when it ended */
  uint64_t flags;
  uint64_t digest; /* read only where bit 1 of flags is set: it is known */
} opguard_value;

#define OPGUARD_VALUE_MASK 1u
#define OPGUARD_VALUE_DIGEST 2u

typedef void (*opguard_value_sink)(void* context, const opguard_value* value);

/* What the device did, for the preflight: docs/design/activities.md says what becomes of it. */
enum opguard_activity_kind {
  OPGUARD_ACTIVITY_KERNEL = 0,
  OPGUARD_ACTIVITY_MEMCPY = 1,
  OPGUARD_ACTIVITY_MEMSET = 2,
  OPGUARD_ACTIVITY_SYNCHRONIZE = 3,
  OPGUARD_ACTIVITY_COLLECTIVE = 4 /* a kernel of the communication library */
};

typedef struct opguard_activity {
  const char* name;          /* demangled or not; valid during the call */
  uint64_t correlation;      /* the innermost id pushed on the launching thread; 0: none */
  uint64_t start_ns, end_ns; /* the device's clock; the host's at the launch where flags say so */
  uint32_t kind;             /* enum opguard_activity_kind */
  uint32_t device, stream;
  uint32_t graph; /* number of the graph that launched it, 0: none */
  uint32_t flags;
  uint32_t reserved;
} opguard_activity;

#define OPGUARD_ACTIVITY_HOST_CLOCK 1u

typedef void (*opguard_activity_sink)(void* context, const opguard_activity* activity);

typedef struct opguard_device_plugin {
  uint32_t abi;            /* OPGUARD_DEVICE_ABI */
  uint32_t size;           /* sizeof(opguard_device_plugin) when it was compiled */
  const char* device_type; /* torch's: "cuda", "npu", "xpu" */

  /* Once, before all else, when the first tensor of this type is met. 0, or an errno value with one
   * sentence in `error` (capacity bytes): tensors of the type are then recorded without values. */
  int (*open)(char* error, uint64_t capacity);

  /* stream: as torch's DLPack table or torch.<type>.current_stream() gives it. One launch for all.
   * Returns how many of the tensors were launched, from the first; the others are unreadable. */
  uint32_t (*fingerprint)(int device, void* stream, const opguard_tensor* tensors, uint32_t count);

  /* The number of the capture in progress on the stream, 0 for none. */
  uint64_t (*capture)(int device, void* stream);

  /* Hands over what is finished; returns how many values. wait_ns: come back at once (0), or wait
   * at most so long for the first. */
  uint64_t (*drain)(opguard_value_sink sink, void* context, uint64_t wait_ns);
  /* Values that the device made and drain() never gives, since open(); where none will come any
   * more (the device is gone), a number above all that could be on their way: 2^62. */
  uint64_t (*lost)(void);

  /* At the end of the process; the device may be gone already. */
  void (*close)(void);

  /* The preflight's part; all null where a device has none (and all members above but abi, size and
   * device_type, where a library has only this part). start: as open(), once, before the device is
   * first used or after. push and pop come in pairs on a thread, around each operator; ids are not
   * 0. What a graph launches belongs to the id under which it was captured, where the library can
   * tell. flush hands over what is finished, in any order, each activity once; wait: at the end,
   * after waiting for the device (never while a stream is captured). Returns how many. */
  int (*activities_start)(char* error, uint64_t capacity);
  void (*activities_push)(uint64_t correlation);
  void (*activities_pop)(void);
  uint64_t (*activities_flush)(opguard_activity_sink sink, void* context, int wait);
  uint64_t (*activities_dropped)(void); /* that the device did and flush never gives */
  /* Nothing is collected any more; what was, flush still gives. */
  void (*activities_stop)(void);
  /* Where activities come from, and why from nowhere better, in a few words; may change with time.
   * Valid until the next call. */
  const char* (*activities_source)(void);

  /* Of values again, and not in the tables of earlier builds (`size` tells); may be null: why a
   * launch failed or values will not come, the last time, in one sentence; "" for never. Valid
   * until this thread's next call. */
  const char* (*problem)(void);
} opguard_device_plugin;

typedef const opguard_device_plugin* (*opguard_device_plugin_entry)(void);
#define OPGUARD_DEVICE_PLUGIN_SYMBOL "opguard_device_plugin_v1"

#ifdef __cplusplus
}
#endif

#endif
