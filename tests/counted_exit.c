/* counted_exit.c - with TOWER_COVERAGE a part of the library: which branches a process has taken is written down before
 * _exit() as it is before exit(), as of tests in children of their own. */
_Noreturn void __real__exit(int code);
_Noreturn void __wrap__exit(int code);
void __gcov_dump(void);

void __wrap__exit(int code)
{
    __gcov_dump();
    __real__exit(code);
}
