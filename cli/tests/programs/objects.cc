// Allocates and frees objects of C++ with each kind of operator, and catches the exception of one that is refused.

#include <cstdio>
#include <new>

struct Wide {
    alignas(64) char bytes[192];
};

template <typename T> static T *volatile kept;

template <typename T> static T *use(T *object) {
    kept<T> = object;
    return kept<T>;
}

int main() {
    for (int i = 0; i < 1000; i++) {
        delete use(new long);
        delete[] use(new char[100 + i]);
        delete use(new (std::nothrow) int);
        delete use(new Wide);
    }
    int caught = 0;
    volatile std::size_t size = std::size_t{1} << 50;
    for (int i = 0; i < 100; i++) {
        try {
            delete[] use(new char[size]);
        } catch (const std::bad_alloc &) {
            caught++;
        }
    }
    // Not counted as inside of an operator after an exception.
    delete use(new long);
    std::printf("%d\n", caught);
}
