/* language.h - what C and C++ write differently, in one spelling that both take. The other headers include it.
 *
 * Options are structs that begin with their size, so that later versions can add members. All of these are good:
 *
 *     tw_session_options options = TW_SIZED(tw_session_options);      all zero, but of this header's size
 *     options.trace = true;
 *     tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = 4), &devices, &error);
 *     tw_devices_create(&(tw_device_options){.virtual_gpus = 4}, &devices, &error);      in C alone
 *
 * A size of 0, as in the last line, stands for the struct's first version: members that came later are not looked at.
 * A size that the library does not know, because the program was built for a newer one, is refused by name.
 *
 * TW_SIZED(type)          all members 0, its size set
 * TW_OPTIONS(type, ...)   a pointer to the same with some members set, for one call; members as ".name = value", of
 *                         arrays ".name[0] = value"
 * TW_ARRAY(type, ...)     a pointer to these values: TW_ARRAY(float, 1, 2, 3)
 * TW_LIST(type, ...)      two arguments, a pointer to these values and their number: TW_LIST(tw_output, loss, train)
 * TW_VALUE(type, ...)     a struct of these members, all of them: TW_VALUE(tw_initializer, TW_INIT_CONSTANT, 0.1f, 0, 0)
 *
 * In C what TW_OPTIONS, TW_ARRAY and TW_LIST point to lives to the end of the block, in C++ to the end of the
 * statement. */
#ifndef TOWER_LANGUAGE_H
#define TOWER_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <initializer_list>
#endif

#if defined(__GNUC__)
#define TW_API __attribute__((visibility("default")))
#define TW_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define TW_AT_END_(function) __attribute__((cleanup(function)))
#define TW_EXTENSION_ __extension__
#else
#define TW_API
#define TW_PRINTF(text, first)
#define TW_AT_END_(function)
#define TW_EXTENSION_
#endif

#ifdef __cplusplus
#define TW_VALUE(type, ...) (type{__VA_ARGS__})
#define TW_SIZED(type) (tw_sized_<type>())
#define TW_OPTIONS(type, ...)                                                                                          \
    (tw_address_([&] { type tw_o_ = tw_sized_<type>(); TW_SET_ALL_(tw_o_, __VA_ARGS__) return tw_o_; }()))
#define TW_ARRAY(type, ...) (std::initializer_list<type>{__VA_ARGS__}.begin())
#define TW_LIST(type, ...)                                                                                             \
    TW_ARRAY(type, __VA_ARGS__), (int)(TW_EXTENSION_ sizeof((const type[]){__VA_ARGS__}) / sizeof(type))

/* TW_SET_ALL_(o, .a = 1, .b = 2) is o .a = 1; o .b = 2; with up to 16 members. */
#define TW_SET_ALL_(o, ...)                                                                                            \
    TW_PICK_(__VA_ARGS__, TW_SET16_, TW_SET15_, TW_SET14_, TW_SET13_, TW_SET12_, TW_SET11_, TW_SET10_, TW_SET9_,       \
             TW_SET8_, TW_SET7_, TW_SET6_, TW_SET5_, TW_SET4_, TW_SET3_, TW_SET2_, TW_SET1_, )                         \
    (o, __VA_ARGS__)
#define TW_PICK_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, set, ...) set
#define TW_SET1_(o, m) o m;
#define TW_SET2_(o, m, ...) o m; TW_SET1_(o, __VA_ARGS__)
#define TW_SET3_(o, m, ...) o m; TW_SET2_(o, __VA_ARGS__)
#define TW_SET4_(o, m, ...) o m; TW_SET3_(o, __VA_ARGS__)
#define TW_SET5_(o, m, ...) o m; TW_SET4_(o, __VA_ARGS__)
#define TW_SET6_(o, m, ...) o m; TW_SET5_(o, __VA_ARGS__)
#define TW_SET7_(o, m, ...) o m; TW_SET6_(o, __VA_ARGS__)
#define TW_SET8_(o, m, ...) o m; TW_SET7_(o, __VA_ARGS__)
#define TW_SET9_(o, m, ...) o m; TW_SET8_(o, __VA_ARGS__)
#define TW_SET10_(o, m, ...) o m; TW_SET9_(o, __VA_ARGS__)
#define TW_SET11_(o, m, ...) o m; TW_SET10_(o, __VA_ARGS__)
#define TW_SET12_(o, m, ...) o m; TW_SET11_(o, __VA_ARGS__)
#define TW_SET13_(o, m, ...) o m; TW_SET12_(o, __VA_ARGS__)
#define TW_SET14_(o, m, ...) o m; TW_SET13_(o, __VA_ARGS__)
#define TW_SET15_(o, m, ...) o m; TW_SET14_(o, __VA_ARGS__)
#define TW_SET16_(o, m, ...) o m; TW_SET15_(o, __VA_ARGS__)

template <typename T> inline T tw_sized_()
{
    T value = T();
    value.size = sizeof value;
    return value;
}

template <typename T> inline const T *tw_address_(const T &value) /* alive to the end of the caller's statement */
{
    return &value;
}
#else
#define TW_VALUE(type, ...) ((type){__VA_ARGS__})
#define TW_SIZED(type) ((type){.size = sizeof(type)})
#define TW_OPTIONS(type, ...) (&(type){.size = sizeof(type), __VA_ARGS__})
#define TW_ARRAY(type, ...) ((const type[]){__VA_ARGS__})
#define TW_LIST(type, ...) TW_ARRAY(type, __VA_ARGS__), (int)(sizeof((const type[]){__VA_ARGS__}) / sizeof(type))
#endif

#ifndef TW_NO_DEPRECATED
#include <tower/deprecated.h>
#endif

#endif
