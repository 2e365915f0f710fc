/* A program that does what recorders forget. Its argument selects one thing; what it allocates is known. */

#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES 1000
#define THREADS 8

/* Each thread's own: two that shared it would free each other's objects. */
static __thread void *volatile kept;
static void *volatile early;

/* The compiler must not leave calls out. */
static void *use(void *object) {
    kept = object;
    return kept;
}

static void pairs(int times) {
    for (int i = 0; i < times; i++)
        free(use(malloc(100 + i % 1000)));
}

static void family(void) {
    for (int i = 0; i < TIMES; i++) {
        void *object = use(malloc(i));
        object = use(realloc(object, 2 * i + 1));
        object = use(reallocarray(object, 3, i + 1));
        if (malloc_usable_size(object) < 3 * (size_t)(i + 1))
            abort();
        free(object);
        char *zeros = use(calloc(3, i + 1));
        for (int at = 0; at < 3 * (i + 1); at++)
            if (zeros[at])
                abort();
        free(zeros);
        free(use(aligned_alloc(64, 128)));
        free(use(memalign(256, 10)));
        free(use(valloc(10)));
        free(use(pvalloc(10)));
        void *place;
        if (posix_memalign(&place, 4096, 10) || (uintptr_t)place % 4096)
            abort();
        free(use(place));
        free(realloc(NULL, 10));
        free(NULL);
    }
    /* Refusals change nothing. */
    void *object = use(malloc(10));
    errno = 0;
    if (realloc(object, PTRDIFF_MAX) || errno != ENOMEM)
        abort();
    if (reallocarray(object, SIZE_MAX, 2) || calloc(SIZE_MAX, 2) || malloc(PTRDIFF_MAX))
        abort();
    errno = 77;
    free(object);
    if (errno != 77)
        abort();
}

static void *thread(void *unused) {
    pairs(TIMES);
    return unused;
}

static pthread_key_t key;

static void *thread_with_destructor(void *unused) {
    pthread_setspecific(key, malloc(10));
    return unused;
}

static void threads(void *(*run)(void *)) {
    pthread_t handles[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&handles[i], NULL, run, NULL))
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(handles[i], NULL);
}

static void handler(int signal) {
    (void)signal;
    write(1, "signal\n", 7);
    _exit(5);
}

static void at_exit(void) { pairs(TIMES); }

__attribute__((constructor)) static void before_main(void) { early = malloc(33); }

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "nothing";
    if (!strcmp(what, "nothing")) {
    } else if (!strcmp(what, "pairs")) {
        pairs(TIMES);
    } else if (!strcmp(what, "many")) {
        /* More than a ring has room for. */
        pairs(600 * TIMES);
    } else if (!strcmp(what, "endless")) {
        /* Unless a test is broken, it is ended before. */
        alarm(20);
        for (;;)
            pairs(TIMES);
    } else if (!strcmp(what, "family")) {
        family();
    } else if (!strcmp(what, "threads")) {
        threads(thread);
    } else if (!strcmp(what, "destructors")) {
        pthread_key_create(&key, free);
        threads(thread_with_destructor);
    } else if (!strcmp(what, "close")) {
        for (int descriptor = 3; descriptor < 1024; descriptor++)
            close(descriptor);
        pairs(TIMES);
    } else if (!strcmp(what, "crash")) {
        pairs(TIMES);
        raise(SIGSEGV);
    } else if (!strcmp(what, "exit")) {
        pairs(TIMES);
        _exit(7);
    } else if (!strcmp(what, "signal")) {
        signal(SIGALRM, handler);
        pairs(TIMES);
        raise(SIGALRM);
    } else if (!strcmp(what, "at-exit")) {
        atexit(at_exit);
    } else if (!strcmp(what, "early")) {
        free(early);
    } else if (!strcmp(what, "fork")) {
        void *object = use(malloc(10));
        pid_t child = fork();
        if (!child) {
            /* Inherited: the recorder of the child does not know it. */
            free(object);
            pairs(TIMES);
            _exit(3);
        }
        int status;
        waitpid(child, &status, 0);
        free(object);
        return WEXITSTATUS(status);
    } else if (!strcmp(what, "exec")) {
        pairs(TIMES);
        execl(arguments[0], arguments[0], "pairs", NULL);
    } else if (!strcmp(what, "holds")) {
        /* As much from malloc as from the system, and all of it written to. */
        size_t size = 64 << 20;
        char *own = use(malloc(size));
        memset(own, 1, size);
        char *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED)
            abort();
        memset(mapped, 1, size);
        /* The ring has room for less: so the recorder looks at this process while it lives. */
        pairs(600 * TIMES);
        free(own);
    } else if (!strcmp(what, "environment")) {
        clearenv();
        pairs(TIMES);
    }
    write(1, "out\n", 4);
    write(2, "err\n", 4);
    return 0;
}
