// inject/cupti_collector.h: device activities as CUPTI records them.
#pragma once

#include <string>
#include <vector>

#include "inject/cupti_api.h"

namespace opguard::cupti {

// Kernels, copies, memsets, synchronisations of all threads and devices go into activities() from
// here on. False: another tool holds CUPTI, or it does not work here: `error` says which.
bool start(const std::vector<std::string>& paths, std::string& error);

// Gives CUPTI back, for another tool to take it.
void stop();

bool collecting();

// "CUPTI API 28, /path/libcupti.so.12"; of the last start().
const std::string& description();

// Hands over what is finished; forced: unfinished records too.
void flush(bool forced);

// Everything in a buffer of CUPTI's, as its completion callback takes it. For tests.
void read_buffer(const Functions& call, uint8_t* buffer, size_t valid);

}  // namespace opguard::cupti
