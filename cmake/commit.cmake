# Writes OUT, a header that names the commit of SOURCE. Rewritten only when that changes, so that a
# commit compiles one file again.
set(commit "")
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --abbrev=12 --exclude=* --dirty=+
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
elseif(EXISTS ${SOURCE}/COMMIT)  # a source distribution
  file(READ ${SOURCE}/COMMIT commit)
  string(STRIP "${commit}" commit)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define OPGUARD_COMMIT \"${commit}\"\n" @ONLY)
