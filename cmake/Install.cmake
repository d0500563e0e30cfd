# What goes into a wheel, all of it inside the package: the program, templates, documents. The commands on PATH are
# entry points that become the program (python/opguard/command.py): one program under two names, and wherever pip puts
# its scripts, the program finds the package around itself. The package's Python files are taken by scikit-build-core
# (pyproject.toml), the extension by src/runtime.
if(SKBUILD)
  install(TARGETS opguard DESTINATION opguard/bin)
  install(DIRECTORY templates/ DESTINATION opguard/templates FILES_MATCHING PATTERN "*.json")
  # The pages that help texts name.
  install(DIRECTORY docs/ DESTINATION opguard/docs FILES_MATCHING PATTERN "*.md")
endif()
