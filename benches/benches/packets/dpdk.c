/* DPDK's pools of buffers, which are inlined C: the loops that are timed. */

#include <stdlib.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#define BURST_MAX 32
/* What DPDK has in front of each object: a header, up to the end of its cache line. */
#define OBJECT_HEADER RTE_CACHE_LINE_SIZE
#define SPARE 256

int peer_begin(void)
{
	char *arguments[] = { "packets", "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=1",
			      "-l", "0", "-m", "128", NULL };
	return rte_eal_init(10, arguments);
}

int peer_begin_thread(void)
{
	return rte_thread_register();
}

void peer_end_thread(void)
{
	rte_thread_unregister();
}

struct rte_mempool *peer_mempool(const char *name, unsigned count, unsigned size, unsigned cache)
{
	return rte_mempool_create(name, count, size, cache, 0, NULL, NULL, NULL, NULL, SOCKET_ID_ANY, 0);
}

struct rte_mempool *peer_pktmbuf_pool(const char *name, unsigned count, unsigned size, unsigned cache)
{
	return rte_pktmbuf_pool_create(name, count, cache, 0, size + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
}

/* A pool of objects that lie one behind the other: each stands for a unit of another region, which is as far from the first. */

static int by_address(const void *one, const void *other)
{
	uintptr_t first = *(const uintptr_t *)one, second = *(const uintptr_t *)other;
	return first < second ? -1 : first > second;
}

struct rte_mempool *peer_places(const char *name, unsigned count, unsigned size, unsigned cache, char **first)
{
	/* DPDK lays them into several pieces of memory: those of one that has enough stay, and the others are never free. */
	unsigned all = count + SPARE, begin = 0, end = 0;
	struct rte_mempool *pool = rte_mempool_create(name, all, size - OBJECT_HEADER, cache, 0, NULL, NULL, NULL, NULL,
						      SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_SPREAD);
	void **objects = malloc(all * sizeof *objects);
	if (pool == NULL || objects == NULL)
		return NULL;
	for (unsigned index = 0; index < all; index++)
		if (rte_mempool_get(pool, &objects[index]) != 0)
			return NULL;
	qsort(objects, all, sizeof *objects, by_address);
	while (end < all && end - begin < count) {
		end++;
		if (end < all && (char *)objects[end] - (char *)objects[end - 1] != size && end - begin < count)
			begin = end;
	}
	if (end - begin < count)
		return NULL;
	*first = objects[begin];
	for (unsigned index = begin; index < end; index++)
		rte_mempool_put(pool, objects[index]);
	free(objects);
	return pool;
}

/* As many places, in bytes from the first. */
int peer_take(struct rte_mempool *pool, const char *first, uint64_t *places, unsigned count)
{
	void *objects[BURST_MAX];
	if (rte_mempool_get_bulk(pool, objects, count) != 0)
		return -1;
	for (unsigned index = 0; index < count; index++)
		places[index] = (uint64_t)((char *)objects[index] - first);
	return 0;
}

void peer_give(struct rte_mempool *pool, char *first, const uint64_t *places, unsigned count)
{
	void *objects[BURST_MAX];
	for (unsigned index = 0; index < count; index++)
		objects[index] = first + places[index];
	rte_mempool_put_bulk(pool, objects, count);
}

/* The number of objects of a burst and whether they are written to are constants in each copy of these. */

static inline __attribute__((always_inline)) long mempool_bursts(struct rte_mempool *pool, unsigned rounds,
								 unsigned burst, int writes)
{
	void *objects[BURST_MAX];
	for (unsigned round = 0; round < rounds; round++) {
		if (rte_mempool_get_bulk(pool, objects, burst) != 0)
			return -1;
		if (writes)
			for (unsigned index = 0; index < burst; index++)
				*(volatile uint64_t *)objects[index] = round;
		rte_mempool_put_bulk(pool, objects, burst);
	}
	return 0;
}

static inline __attribute__((always_inline)) long pktmbuf_bursts(struct rte_mempool *pool, unsigned rounds,
								 unsigned burst, int writes)
{
	struct rte_mbuf *packets[BURST_MAX];
	for (unsigned round = 0; round < rounds; round++) {
		if (rte_pktmbuf_alloc_bulk(pool, packets, burst) != 0)
			return -1;
		if (writes)
			for (unsigned index = 0; index < burst; index++)
				*rte_pktmbuf_mtod(packets[index], volatile uint64_t *) = round;
		rte_pktmbuf_free_bulk(packets, burst);
	}
	return 0;
}

#define FOR_EACH_BURST(name)                                                                       \
	long peer_##name(struct rte_mempool *pool, unsigned rounds, unsigned burst, int writes)    \
	{                                                                                          \
		switch (burst) {                                                                   \
		case 1: return writes ? name(pool, rounds, 1, 1) : name(pool, rounds, 1, 0);       \
		case 8: return writes ? name(pool, rounds, 8, 1) : name(pool, rounds, 8, 0);       \
		case 32: return writes ? name(pool, rounds, 32, 1) : name(pool, rounds, 32, 0);    \
		default: return -1;                                                                \
		}                                                                                  \
	}

FOR_EACH_BURST(mempool_bursts)
FOR_EACH_BURST(pktmbuf_bursts)
