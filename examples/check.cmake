# Runs PROGRAM; it must end with 0 and print PROMISE (a regular expression; empty: anything).
execute_process(COMMAND ${PROGRAM} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")
if(NOT code EQUAL 0)
    message(FATAL_ERROR "ended with ${code}")
endif()
if(NOT output MATCHES "${PROMISE}")
    message(FATAL_ERROR "did not print ${PROMISE}")
endif()
