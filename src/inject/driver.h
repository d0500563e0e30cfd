// inject/driver.h: the driver's functions we ask ourselves, of the libcuda.so.1 that the process
// has loaded; all may be null.
#pragma once

#include <chrono>
#include <cstdint>

namespace opguard {

struct Driver {
  int (*function_name)(const char** name, void* function) = nullptr;  // 12.3
  int (*kernel_name)(const char** name, void* kernel) = nullptr;      // 12.3
  int (*current_device)(int* device) = nullptr;
  int (*is_capturing)(void* stream, int* status) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device)(int* device, int ordinal) = nullptr;
  int (*primary_state)(int device, unsigned* flags, int* active) = nullptr;
  int (*retain)(void** context, int device) = nullptr;
  int (*release)(int device) = nullptr;
  int (*push)(void* context) = nullptr;
  int (*pop)(void** context) = nullptr;
  int (*synchronize)() = nullptr;
};

// Null while the process has not loaded the driver. Loads nothing.
const Driver* driver();

// Waits for all work of every device this process uses, or so long.
void wait_for_devices(std::chrono::seconds most);

}  // namespace opguard
