# Writes OUTPUT, a header with the revision of the sources in SOURCE: of a checkout the commit, with "-dirty" behind it
# where files were changed since; of a tarball what `git archive` has put into the next line; otherwise "". A header
# that says so already is left alone, so that nothing is compiled again.
#
#     cmake -DSOURCE=. -DOUTPUT=revision.h -P cmake/revision.cmake
set(revision "$Format:%H$")
if(revision MATCHES "^[0-9a-f]+$")
    string(SUBSTRING ${revision} 0 12 revision)
else()
    set(revision "")
    find_program(GIT git)
    if(GIT AND EXISTS ${SOURCE}/.git)
        execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --exclude=* --dirty --abbrev=12
                        OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define TOWER_REVISION \"${revision}\"\n")
