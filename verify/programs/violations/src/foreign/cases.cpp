// Allocation as C++ programs do it. What compilers could leave out passes through `keep`.
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static void keep(const void *address) { asm volatile("" : : "r"(address) : "memory"); }

extern "C" void foreign_new_and_delete() {
    auto *number = new long(7);
    keep(number);
    delete number;
}

extern "C" void foreign_vector() {
    std::vector<long> numbers;
    for (long number = 0; number < 100; number++) numbers.push_back(number);
    keep(numbers.data());
}

extern "C" void foreign_string() {
    std::string text("longer than what a string holds within itself");
    text += text;
    keep(text.data());
}

extern "C" void foreign_map() {
    std::map<long, long> map;
    map[7] = 7;
    keep(&map);
}

extern "C" void foreign_shared() {
    auto shared = std::make_shared<long>(7);
    keep(shared.get());
}

extern "C" void foreign_function() {
    long far[8] = {7};
    std::function<long()> function = [far] { return far[0]; };
    keep(&function);
}

extern "C" int foreign_exception() {
    try {
        throw std::runtime_error("on purpose");
    } catch (const std::exception &exception) {
        keep(exception.what());
        return 1;
    }
}

extern "C" void foreign_nothrow() {
    auto *number = new (std::nothrow) long(7);
    keep(number);
    delete number;
}
