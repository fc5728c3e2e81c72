/* foreign.c - a library that has a plug-in's name and is none. */
int tower_of_babel(void);

int tower_of_babel(void)
{
    return 0;
}
