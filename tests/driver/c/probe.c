/* A driver in one page: finds a device, starts it, binds a ring, and stores a block and gets it back. */

#include <string.h>

#include "kvnode.h"

/* How the device is reached. Unit 0 is the slice, unit 1 the requester of port 0. `memory` is what the requester
 * reaches at `address`, a multiple of 4096. */
struct bus {
    uint32_t (*read)(uint32_t unit, uint32_t offset);
    void (*write)(uint32_t unit, uint32_t offset, uint32_t value);
    volatile unsigned char *memory;
    uint64_t address;
};

enum { SLICE, REQUESTER };
enum { LOG2_ENTRIES = 2, ENTRIES = 1 << LOG2_ENTRIES, PATIENCE = 100000, BLOCK = 1000, QUOTA = 4 };
enum { SUBMISSION = 0, COMPLETION = 1024, KEYS = 2048, RESULTS = 2176, DATA = 4096, BACK = 8192, MEMORY = 12288 };

static const uint64_t KEY[2] = {0x0123456789abcdef, 0xfedcba9876543210};

static unsigned tail, head;

#define CHECK(good, what) \
    do {                  \
        if (!(good))      \
            return what;  \
    } while (0)

static uint32_t ring_register(uint32_t offset)
{
    return KVNODE_RING_OFFSET(0) + offset;
}

static int becomes(const struct bus *bus, uint32_t unit, uint32_t offset, uint32_t mask, uint32_t value)
{
    for (int i = 0; i < PATIENCE; i++)
        if ((bus->read(unit, offset) & mask) == value)
            return 1;
    return 0;
}

static uint32_t crc32c(const volatile unsigned char *data, size_t length)
{
    uint32_t crc = 0xffffffff;
    while (length--) {
        crc ^= *data++;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* One administrative command; its operands have been written. */
static uint32_t administer(const struct bus *bus, uint32_t opcode)
{
    bus->write(SLICE, KVNODE_REG_ADMIN_COMMAND_OFFSET, opcode | KVNODE_REG_ADMIN_COMMAND_GO_MASK);
    if (!becomes(bus, SLICE, KVNODE_REG_ADMIN_STATUS_OFFSET, KVNODE_REG_ADMIN_STATUS_BUSY_MASK, 0))
        return KVNODE_STATUS_UNAVAILABLE;
    return bus->read(SLICE, KVNODE_REG_ADMIN_STATUS_OFFSET) & KVNODE_REG_ADMIN_STATUS_STATUS_MASK;
}

/* Gives the ring a command and waits for its completion; NULL if there is none, or that of another. */
static const volatile struct kvnode_completion *run(const struct bus *bus, struct kvnode_descriptor command)
{
    volatile struct kvnode_descriptor *submission = (volatile void *)(bus->memory + SUBMISSION);
    const volatile struct kvnode_completion *completion = (volatile void *)(bus->memory + COMPLETION);
    unsigned phase = head / ENTRIES % 2 ? 0 : KVNODE_COMPLETION_FLAG_PHASE;

    command.tag = (uint16_t)tail;
    submission[tail % ENTRIES] = command;
    bus->write(REQUESTER, ring_register(KVNODE_RING_REG_TAIL_OFFSET), ++tail % ENTRIES);
    completion += head % ENTRIES;
    for (int i = 0; i < PATIENCE; i++) {
        uint32_t status = bus->read(REQUESTER, ring_register(KVNODE_RING_REG_STATUS_OFFSET));
        if (status & KVNODE_RING_REG_STATUS_FAILED_MASK)
            return NULL;
        if ((completion->flags & KVNODE_COMPLETION_FLAG_PHASE) == phase) {
            bus->write(REQUESTER, ring_register(KVNODE_RING_REG_HEAD_OFFSET), ++head % ENTRIES);
            return completion->tag == (uint16_t)(tail - 1) ? completion : NULL;
        }
    }
    return NULL;
}

static const char *start(const struct bus *bus, uint64_t epoch)
{
    CHECK(bus->read(SLICE, KVNODE_REG_ID_OFFSET) == KVNODE_REG_ID_MAGIC_VALUE, "unit 0 is no slice");
    CHECK(bus->read(REQUESTER, KVNODE_REQUESTER_REG_ID_OFFSET) == KVNODE_REQUESTER_REG_ID_MAGIC_VALUE,
          "unit 1 is no requester");
    bus->write(REQUESTER, ring_register(KVNODE_RING_REG_CONTROL_OFFSET), 0);
    CHECK(becomes(bus, REQUESTER, ring_register(KVNODE_RING_REG_STATUS_OFFSET), KVNODE_RING_REG_STATUS_ACTIVE_MASK, 0),
          "the ring stays in use");
    bus->write(SLICE, KVNODE_REG_CONTROL_OFFSET, KVNODE_REG_CONTROL_RESTART_MASK);
    CHECK(becomes(bus, SLICE, KVNODE_REG_STATUS_OFFSET, KVNODE_REG_STATUS_READY_MASK, KVNODE_REG_STATUS_READY_MASK),
          "the slice is not ready");
    bus->write(SLICE, KVNODE_REG_EPOCH_LOW_OFFSET, (uint32_t)epoch);
    bus->write(SLICE, KVNODE_REG_EPOCH_HIGH_OFFSET, (uint32_t)(epoch >> 32));
    bus->write(SLICE, KVNODE_REG_CONTROL_OFFSET, KVNODE_REG_CONTROL_START_MASK);
    CHECK(becomes(bus, SLICE, KVNODE_REG_STATUS_OFFSET, KVNODE_REG_STATUS_STARTED_MASK, KVNODE_REG_STATUS_STARTED_MASK),
          "the epoch was not taken");
    return NULL;
}

static const char *bind(const struct bus *bus)
{
    static const struct {
        uint32_t low, high, at;
    } bases[] = {
        {KVNODE_RING_REG_SUBMISSION_LOW_OFFSET, KVNODE_RING_REG_SUBMISSION_HIGH_OFFSET, SUBMISSION},
        {KVNODE_RING_REG_COMPLETION_LOW_OFFSET, KVNODE_RING_REG_COMPLETION_HIGH_OFFSET, COMPLETION},
    };

    bus->write(SLICE, KVNODE_REG_ADMIN_PARTITION_OFFSET, 0);
    bus->write(SLICE, KVNODE_REG_ADMIN_QUOTA_OFFSET, QUOTA);
    bus->write(SLICE, KVNODE_REG_ADMIN_MODEL_OFFSET,
               (uint32_t)KVNODE_MODEL_STATE_LIVE << KVNODE_REG_ADMIN_MODEL_STATE_SHIFT);
    bus->write(SLICE, KVNODE_REG_ADMIN_RING_OFFSET,
               (uint32_t)KVNODE_BOUND_PARTITION << KVNODE_REG_ADMIN_RING_BINDING_SHIFT);
    CHECK(administer(bus, KVNODE_OPCODE_SET_PARTITION) == KVNODE_STATUS_OK, "SET_PARTITION failed");
    CHECK(administer(bus, KVNODE_OPCODE_SET_MODEL) == KVNODE_STATUS_OK, "SET_MODEL failed");
    CHECK(administer(bus, KVNODE_OPCODE_BIND) == KVNODE_STATUS_OK, "BIND failed");
    for (int i = 0; i < MEMORY; i++)
        bus->memory[i] = 0;
    tail = head = 0;
    for (int i = 0; i < 2; i++) {
        bus->write(REQUESTER, ring_register(bases[i].low), (uint32_t)(bus->address + bases[i].at));
        bus->write(REQUESTER, ring_register(bases[i].high), (uint32_t)((bus->address + bases[i].at) >> 32));
    }
    bus->write(REQUESTER, ring_register(KVNODE_RING_REG_SIZE_OFFSET), LOG2_ENTRIES);
    bus->write(REQUESTER, ring_register(KVNODE_RING_REG_CONTROL_OFFSET), KVNODE_RING_REG_CONTROL_ENABLE_MASK);
    return NULL;
}

static const volatile struct kvnode_completion *look(const struct bus *bus)
{
    memcpy((void *)(uintptr_t)(bus->memory + KEYS), KEY, sizeof KEY);
    return run(bus, (struct kvnode_descriptor){.opcode = KVNODE_OPCODE_LOOKUP,
                                               .flags = KVNODE_DESCRIPTOR_FLAG_RUN | KVNODE_DESCRIPTOR_FLAG_PIN,
                                               .count = 1,
                                               .data = bus->address + KEYS,
                                               .results = bus->address + RESULTS});
}

static const char *store(const struct bus *bus)
{
    const volatile struct kvnode_completion *done = look(bus);
    CHECK(done && done->status == KVNODE_STATUS_MISS && done->items == 1, "the first LOOKUP is no MISS");
    done = run(bus, (struct kvnode_descriptor){.opcode = KVNODE_OPCODE_OPEN_SESSION});
    CHECK(done && done->status == KVNODE_STATUS_OK && done->flags & KVNODE_COMPLETION_FLAG_GIVEN, "no session");
    uint64_t session = done->slot;
    done = run(bus, (struct kvnode_descriptor){
                        .opcode = KVNODE_OPCODE_ALLOC, .length = BLOCK, .subject = {KEY[0], KEY[1]}, .slot = session});
    CHECK(done && done->status == KVNODE_STATUS_GRANTED && done->flags & KVNODE_COMPLETION_FLAG_NAMED, "no frame");
    struct kvnode_descriptor block = {.subject = {done->handle[0], done->handle[1]}, .length = BLOCK};
    for (int i = 0; i < BLOCK; i++)
        bus->memory[DATA + i] = (unsigned char)(i * 7);
    block.opcode = KVNODE_OPCODE_WRITE;
    block.data = bus->address + DATA;
    done = run(bus, block);
    CHECK(done && done->status == KVNODE_STATUS_OK, "WRITE failed");
    block.opcode = KVNODE_OPCODE_SEAL;
    block.crc = crc32c(bus->memory + DATA, BLOCK);
    done = run(bus, block);
    CHECK(done && done->status == KVNODE_STATUS_OK, "SEAL failed");
    done = run(bus, (struct kvnode_descriptor){.opcode = KVNODE_OPCODE_CLOSE_SESSION, .slot = session});
    CHECK(done && done->status == KVNODE_STATUS_OK, "CLOSE_SESSION failed");
    return NULL;
}

static const char *get(const struct bus *bus, uint32_t segments)
{
    const volatile struct kvnode_completion *result = (volatile void *)(bus->memory + RESULTS), *done = look(bus);
    CHECK(done && done->status == KVNODE_STATUS_HIT && done->count == 1, "the second LOOKUP is no HIT");
    CHECK(result->flags == (KVNODE_COMPLETION_FLAG_NAMED | KVNODE_COMPLETION_FLAG_GIVEN), "a HIT without handle or pin");
    uint64_t pin = result->slot;
    done = run(bus, (struct kvnode_descriptor){.opcode = KVNODE_OPCODE_READ,
                                               .subject = {result->handle[0], result->handle[1]},
                                               .count = (uint16_t)segments,
                                               .length = BLOCK,
                                               .data = bus->address + BACK});
    CHECK(done && done->status == KVNODE_STATUS_OK && done->slot == BLOCK, "READ failed");
    for (int i = 0; i < BLOCK; i++)
        CHECK(bus->memory[BACK + i] == (unsigned char)(i * 7), "other bytes came back");
    done = run(bus, (struct kvnode_descriptor){.opcode = KVNODE_OPCODE_UNPIN, .slot = pin});
    CHECK(done && done->status == KVNODE_STATUS_OK, "UNPIN failed");
    bus->write(REQUESTER, ring_register(KVNODE_RING_REG_CONTROL_OFFSET), 0);
    CHECK(becomes(bus, REQUESTER, ring_register(KVNODE_RING_REG_STATUS_OFFSET), KVNODE_RING_REG_STATUS_ACTIVE_MASK, 0),
          "the ring does not end");
    return NULL;
}

/* NULL, or in a few words what went wrong. */
const char *probe(const struct bus *bus, uint64_t epoch)
{
    uint32_t memory = bus->read(REQUESTER, KVNODE_REQUESTER_REG_CAP_MEMORY_OFFSET);
    uint32_t segment = memory & KVNODE_REQUESTER_REG_CAP_MEMORY_SEGMENT_BYTES_MASK;
    const char *failed = start(bus, epoch);

    CHECK(segment, "segments have no bytes");
    if (!failed)
        failed = bind(bus);
    if (!failed)
        failed = store(bus);
    return failed ? failed : get(bus, (BLOCK + segment - 1) / segment);
}
