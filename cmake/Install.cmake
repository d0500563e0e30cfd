# What goes into a wheel: the commands on PATH, templates inside the package. The package's Python files are
# taken by scikit-build-core (pyproject.toml), the extension by src/runtime.
if(SKBUILD)
  install(TARGETS opguard opguard-instrument DESTINATION ${SKBUILD_SCRIPTS_DIR})
  install(DIRECTORY templates/ DESTINATION opguard/templates FILES_MATCHING PATTERN "*.json")
endif()
