# Packages of the whole, as `cpack` makes them in a build folder: a Debian package (-G DEB), an archive (-G TGZ). What
# they depend on is read from the libraries that were linked (dpkg-shlibdeps). scripts/release makes both.
# Who makes a package answers for it, as Debian's tools have it: DEBFULLNAME and DEBEMAIL, or whom git knows, or who is
# logged in.
set(name "$ENV{DEBFULLNAME}")
set(address "$ENV{DEBEMAIL}")
find_program(GIT git)
foreach(part name address)
    string(REPLACE address email key ${part})
    if(NOT ${part} AND GIT)
        execute_process(COMMAND ${GIT} -C ${CMAKE_SOURCE_DIR} config user.${key} OUTPUT_VARIABLE ${part}
                        OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
endforeach()
cmake_host_system_information(RESULT host QUERY HOSTNAME)
foreach(user "$ENV{USER}" root)
    if(NOT name)
        set(name "${user}")
    endif()
    if(NOT address AND user)
        set(address "${user}@${host}")
    endif()
endforeach()
set(TOWER_MAINTAINER "${name} <${address}>" CACHE STRING "Who answers for packages: Name <address>")

set(CPACK_PACKAGE_NAME tower)
set(CPACK_PACKAGE_VENDOR Tower)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_DESCRIPTION "Tower trains neural networks over several devices: explicit placement,
towers that share variables, averaged gradients, input pipelines, checkpoints and
event logs in TensorFlow's formats. It brings the program tower, the library
libtower with its headers, and the guide.")
set(CPACK_PACKAGE_CONTACT ${TOWER_MAINTAINER})
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME tower-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "graphviz, dataset-fashion-mnist, tensorboard")
# dpkg-shlibdeps asks where a program's own libraries are.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/src)
include(CPack)
