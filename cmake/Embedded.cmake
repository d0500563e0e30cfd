# opguard_embedded(TARGET SOURCE): a library of a C++ source that a command of the build makes, such as the report's page.
#
# It links nothing. In the room's own library CMake would have every file of the room wait until all the libraries that
# the room links are built, since the command might use them: the last rooms would be compiled one by one.
function(opguard_embedded target source)
  add_library(${target} STATIC ${source})
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${target} PUBLIC opguard_options)
endfunction()
