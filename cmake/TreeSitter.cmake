# tree-sitter 0.25.1 and tree-sitter-python 0.25.0 as one static C library.
#
# Their C sources come from npm by the lock file in cmake/grammar (no build script runs), or from
# -DOPGUARD_TREE_SITTER_DIR=DIR, a folder laid out like node_modules.
set(OPGUARD_TREE_SITTER_DIR "" CACHE PATH "node_modules-like folder with tree-sitter and tree-sitter-python")
set(_ts_dir "${OPGUARD_TREE_SITTER_DIR}")
if(NOT _ts_dir)
  set(_ts_dir "${PROJECT_BINARY_DIR}/grammar/node_modules")
  if(NOT EXISTS "${_ts_dir}/tree-sitter-python/src/scanner.c")
    find_program(NPM_PROGRAM npm REQUIRED)
    message(STATUS "Fetching tree-sitter and tree-sitter-python with npm ci")
    file(COPY "${PROJECT_SOURCE_DIR}/cmake/grammar/package.json"
              "${PROJECT_SOURCE_DIR}/cmake/grammar/package-lock.json"
         DESTINATION "${PROJECT_BINARY_DIR}/grammar")
    execute_process(
      COMMAND ${NPM_PROGRAM} ci --ignore-scripts --no-audit --no-fund
      WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/grammar"
      RESULT_VARIABLE _npm_result OUTPUT_VARIABLE _npm_output ERROR_VARIABLE _npm_output)
    if(NOT _npm_result EQUAL 0)
      message(FATAL_ERROR "npm ci failed; set -DOPGUARD_TREE_SITTER_DIR to a folder that holds "
                          "tree-sitter and tree-sitter-python.\n${_npm_output}")
    endif()
  endif()
endif()

set(_ts_core "${_ts_dir}/tree-sitter/vendor/tree-sitter/lib")
set(_ts_python "${_ts_dir}/tree-sitter-python/src")
foreach(_ts_file "${_ts_core}/src/lib.c" "${_ts_python}/parser.c" "${_ts_python}/scanner.c")
  if(NOT EXISTS "${_ts_file}")
    message(FATAL_ERROR "tree-sitter source missing: ${_ts_file}")
  endif()
endforeach()

add_library(opguard_tree_sitter STATIC "${_ts_core}/src/lib.c" "${_ts_python}/parser.c"
                                       "${_ts_python}/scanner.c")
target_compile_definitions(opguard_tree_sitter PRIVATE _DEFAULT_SOURCE _POSIX_C_SOURCE=200112L)
# Nothing replaces its functions at load time: they may be inlined into each other.
target_compile_options(opguard_tree_sitter PRIVATE -w -fno-semantic-interposition)
target_include_directories(opguard_tree_sitter SYSTEM PUBLIC "${_ts_core}/include"
                           PRIVATE "${_ts_core}/src" "${_ts_python}")
