# find_package(Tower) gives the target Tower::tower. The library brings what it needs along.
include(${CMAKE_CURRENT_LIST_DIR}/TowerTargets.cmake)
