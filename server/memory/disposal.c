/* Owns the thread that frees large memory.
 *
 * Returning a gigabyte to the system takes the kernel tens of milliseconds, which no loop and no lock can wait for. A
 * loop puts the object on a list and goes on; the thread frees it. Without memory for the list, or without a thread,
 * the caller frees it itself: slow, but nothing is lost. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "server/memory/memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct waste {
    struct waste *next;
    void (*drop)(void *object);
    void *object;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    struct waste *first;
    bool is_running, is_ending;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void *run(void *unused)
{
    pthread_mutex_lock(&heap.lock);
    while (heap.first || !heap.is_ending) {
        struct waste *waste = heap.first;
        heap.first = NULL;
        if (!waste) {
            pthread_cond_wait(&heap.wake, &heap.lock);
            continue;
        }
        pthread_mutex_unlock(&heap.lock);
        for (struct waste *next; waste; waste = next) {
            next = waste->next;
            waste->drop(waste->object);
            free(waste);
        }
        pthread_mutex_lock(&heap.lock);
    }
    pthread_mutex_unlock(&heap.lock);
    return unused;
}

/* Only the first I/O thread receives signals. */
static bool start(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    heap.is_running = pthread_create(&heap.thread, NULL, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (heap.is_running)
        pthread_setname_np(heap.thread, "disposal");
    return heap.is_running;
}

void disposal_later(void (*drop)(void *object), void *object)
{
    struct waste *waste = malloc(sizeof *waste);
    bool is_taken = false;
    pthread_mutex_lock(&heap.lock);
    if (waste && (heap.is_running || start())) {
        *waste = (struct waste){.next = heap.first, .drop = drop, .object = object};
        heap.first = waste;
        is_taken = true;
        pthread_cond_signal(&heap.wake);
    }
    pthread_mutex_unlock(&heap.lock);
    if (is_taken)
        return;
    free(waste);
    drop(object);
}

void disposal_finish(void)
{
    pthread_mutex_lock(&heap.lock);
    bool was_running = heap.is_running;
    heap.is_ending = true;
    pthread_cond_signal(&heap.wake);
    pthread_mutex_unlock(&heap.lock);
    if (was_running)
        pthread_join(heap.thread, NULL);
}
