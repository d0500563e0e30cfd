# What goes into a wheel: the commands on PATH, templates inside the package. The package's Python files are
# taken by scikit-build-core (pyproject.toml), the extension by src/runtime.
if(SKBUILD)
  install(TARGETS opguard DESTINATION ${SKBUILD_SCRIPTS_DIR})
  # A wheel holds no links.
  file(WRITE ${PROJECT_BINARY_DIR}/opguard-instrument
    "#!/bin/sh\nexec \"$(dirname \"$(readlink -f \"$0\")\")/opguard\" instrument \"$@\"\n")
  install(PROGRAMS ${PROJECT_BINARY_DIR}/opguard-instrument DESTINATION ${SKBUILD_SCRIPTS_DIR})
  install(DIRECTORY templates/ DESTINATION opguard/templates FILES_MATCHING PATTERN "*.json")
endif()
