// inject/symbols.h: looking symbols up past our own dlsym, which stands before the C library's
// where this library is preloaded.
#pragma once

namespace opguard {

// dlsym(handle, name) of the C library.
void* symbol_of(void* handle, const char* name);

// What the program would have called by `name` without us. It lies after us in the global scope, or
// in the libraries of the object that `caller` (an address in it) belongs to. Null if there is
// none.
void* next_symbol(const char* name, const void* caller);

}  // namespace opguard
