# What goes into a wheel: the commands on PATH, templates inside the package. The package's Python files are
# taken by scikit-build-core (pyproject.toml), the extension by src/runtime.
if(SKBUILD)
  install(TARGETS opguard DESTINATION ${SKBUILD_SCRIPTS_DIR})
  # A copy: a wheel holds no links.
  install(PROGRAMS $<TARGET_FILE:opguard> DESTINATION ${SKBUILD_SCRIPTS_DIR} RENAME opguard-instrument)
  install(DIRECTORY templates/ DESTINATION opguard/templates FILES_MATCHING PATTERN "*.json")
endif()
