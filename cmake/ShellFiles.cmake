# The manual page and the completions, printed by the program itself at each build, and where systems look for them.
set(shell_files ${PROJECT_BINARY_DIR}/share)
set(prefix share)
if(SKBUILD)
  set(prefix ${SKBUILD_DATA_DIR}/share)
endif()
set(made)
function(shell_file folder name)
  add_custom_command(
    OUTPUT ${shell_files}/${folder}/${name}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${shell_files}/${folder}
    COMMAND opguard ${ARGN} > ${shell_files}/${folder}/${name}
    DEPENDS opguard
    COMMENT "Writing ${name}"
    VERBATIM)
  install(FILES ${shell_files}/${folder}/${name} DESTINATION ${prefix}/${folder})
  set(made ${made} ${shell_files}/${folder}/${name} PARENT_SCOPE)
endfunction()
shell_file(man/man1 opguard.1 man)
shell_file(bash-completion/completions opguard completion bash)
shell_file(zsh/site-functions _opguard completion zsh)
shell_file(fish/vendor_completions.d opguard.fish completion fish)
add_custom_target(opguard_shell_files ALL DEPENDS ${made})
