# What a project that uses Tower writes.
cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C)
find_package(Tower 0.1 REQUIRED)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE Tower::tower)
