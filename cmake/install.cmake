# What `cmake --install` puts where: library, headers, program, manual pages, completions, and the two ways in which
# other builds find the library (pkg-config's tower.pc; CMake's find_package(Tower), target Tower::tower).
include(CMakePackageConfigHelpers)

install(TARGETS tower EXPORT TowerTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tower_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/tower DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
foreach(page LICENSE README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md)
    install(FILES ${CMAKE_SOURCE_DIR}/${page} DESTINATION ${CMAKE_INSTALL_DOCDIR})
endforeach()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The prefix may still change at install time, so both files find the rest from where they lie.
file(RELATIVE_PATH PREFIX_FROM_PKGCONFIG ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH LIBDIR_FROM_PREFIX ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH INCLUDEDIR_FROM_PREFIX ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
# Below a prefix of one's own the loader would not look for the library; below /usr it does, and packages shall not say so.
set(RPATH_OF_LIBS " -Wl,-rpath,\${libdir}")
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(RPATH_OF_LIBS "")
endif()
# What stands behind libtower.a, for `pkg-config --static`. By name and not as Requires.private, which would ask
# everybody for the development files of these.
get_target_property(STATIC_LIBRARIES tower_static INTERFACE_LINK_OPTIONS)
list(APPEND STATIC_LIBRARIES -ldnnl ${PROTOBUF_C_LDFLAGS} ${ARCHIVE_LDFLAGS} ${PNG_LDFLAGS} ${JPEG_LDFLAGS}
     ${RE2_LDFLAGS} ${NETTLE_LDFLAGS} -lz -lgomp -lstdc++ -pthread -ldl -lm)
list(REMOVE_DUPLICATES STATIC_LIBRARIES)
list(JOIN STATIC_LIBRARIES " " STATIC_LIBRARIES)
configure_file(${CMAKE_SOURCE_DIR}/cmake/tower.pc.in ${CMAKE_BINARY_DIR}/tower.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tower.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# TensorFlow's C API, under TensorFlow's names: it can be left out where TensorFlow's own library has the same prefix.
option(TOWER_INSTALL_TENSORFLOW "Install libtensorflow, its headers and tensorflow.pc" ON)
if(TOWER_INSTALL_TENSORFLOW)
    set_target_properties(tensorflow_c PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS tensorflow_c tensorflow_framework LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/tensorflow ${CMAKE_SOURCE_DIR}/include/tsl
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
    configure_file(${CMAKE_SOURCE_DIR}/cmake/tensorflow.pc.in ${CMAKE_BINARY_DIR}/tensorflow.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/tensorflow.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

set(CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Tower)
install(EXPORT TowerTargets NAMESPACE Tower:: DESTINATION ${CONFIG_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TowerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/TowerConfig.cmake ${CMAKE_BINARY_DIR}/TowerConfigVersion.cmake
        DESTINATION ${CONFIG_DIR})

file(RELATIVE_PATH LIBDIR_FROM_BINDIR ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(tower_program PROPERTIES INSTALL_RPATH "$ORIGIN/${LIBDIR_FROM_BINDIR}")
install(TARGETS tower_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# The program writes its own pages and completions, so it must run here. A sanitized build is not for installing.
if(NOT CMAKE_CROSSCOMPILING AND NOT TOWER_SANITIZE)
    set(SHELLS ${CMAKE_BINARY_DIR}/completions)
    add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/man/tower.1
                       COMMAND ${CMAKE_COMMAND} -E rm -rf ${CMAKE_BINARY_DIR}/man
                       COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man ${SHELLS}
                       COMMAND tower_program man --directory ${CMAKE_BINARY_DIR}/man
                       COMMAND tower_program completion bash > ${SHELLS}/tower
                       COMMAND tower_program completion zsh > ${SHELLS}/_tower
                       COMMAND tower_program completion fish > ${SHELLS}/tower.fish
                       DEPENDS tower_program COMMENT "Writing manual pages and completions" VERBATIM)
    add_custom_target(tower_pages ALL DEPENDS ${CMAKE_BINARY_DIR}/man/tower.1)
    install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${SHELLS}/tower DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${SHELLS}/_tower DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${SHELLS}/tower.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
