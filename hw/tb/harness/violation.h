// What a model throws when the design breaks the rules of an interface.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <stdexcept>

class Violation : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

[[noreturn, gnu::format(printf, 1, 2)]] inline void violation(const char* format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    throw Violation(text);
}
