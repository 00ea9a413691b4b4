/* Registers, records in memory, enumerations and identifiers of kvnode. Written by `kvnode emit csr`; do not edit.
 *
 * KVNODE_REG_R_OFFSET       byte offset of register R of a slice; all registers are 32 bits wide
 * KVNODE_REG_R_F_SHIFT      lowest bit of its field F
 * KVNODE_REG_R_F_MASK       bits of the field, where they are in the register
 * KVNODE_REG_R_F_VALUE      what a constant field reads in every slice
 * KVNODE_REQUESTER_REG_R    likewise, of a requester
 * KVNODE_RING_REG_R         likewise, of one ring of a requester: offsets from KVNODE_RING_OFFSET(number of the ring)
 * struct kvnode_N           record N in memory, little-endian; KVNODE_N_FLAG_F is bit F of its flags
 * KVNODE_HANDLE_F_WORD      64-bit word that has field F of a handle; word 0 has bits 63 to 0
 * KVNODE_HANDLE_F_SHIFT     lowest bit of the field in that word; likewise KVNODE_SLOT_ID, for pin and session ids
 * KVNODE_HANDLE_F_MASK      bits of the field, where they are in the word
 */
#ifndef KVNODE_H
#define KVNODE_H

#include <stddef.h>
#include <stdint.h>

/* Identity */
#define KVNODE_REG_ID_OFFSET 0x000u
#define KVNODE_REG_ID_MAGIC_SHIFT 0
#define KVNODE_REG_ID_MAGIC_MASK 0xffffffffu
#define KVNODE_REG_ID_MAGIC_VALUE 0x4b564e44u

/* Interface version */
#define KVNODE_REG_VERSION_OFFSET 0x004u
#define KVNODE_REG_VERSION_MINOR_SHIFT 0
#define KVNODE_REG_VERSION_MINOR_MASK 0x0000ffffu
#define KVNODE_REG_VERSION_MINOR_VALUE 0x3u
#define KVNODE_REG_VERSION_MAJOR_SHIFT 16
#define KVNODE_REG_VERSION_MAJOR_MASK 0xffff0000u
#define KVNODE_REG_VERSION_MAJOR_VALUE 0x0u

/* Start and restart */
#define KVNODE_REG_CONTROL_OFFSET 0x008u
#define KVNODE_REG_CONTROL_START_SHIFT 0
#define KVNODE_REG_CONTROL_START_MASK 0x00000001u
#define KVNODE_REG_CONTROL_RESTART_SHIFT 1
#define KVNODE_REG_CONTROL_RESTART_MASK 0x00000002u

/* State of service */
#define KVNODE_REG_STATUS_OFFSET 0x00cu
#define KVNODE_REG_STATUS_READY_SHIFT 0
#define KVNODE_REG_STATUS_READY_MASK 0x00000001u
#define KVNODE_REG_STATUS_STARTED_SHIFT 1
#define KVNODE_REG_STATUS_STARTED_MASK 0x00000002u

/* Epoch, low half */
#define KVNODE_REG_EPOCH_LOW_OFFSET 0x010u
#define KVNODE_REG_EPOCH_LOW_LOW_SHIFT 0
#define KVNODE_REG_EPOCH_LOW_LOW_MASK 0xffffffffu

/* Epoch, high half */
#define KVNODE_REG_EPOCH_HIGH_OFFSET 0x014u
#define KVNODE_REG_EPOCH_HIGH_HIGH_SHIFT 0
#define KVNODE_REG_EPOCH_HIGH_HIGH_MASK 0xffffffffu

/* Scratch */
#define KVNODE_REG_SCRATCH_OFFSET 0x018u
#define KVNODE_REG_SCRATCH_VALUE_SHIFT 0
#define KVNODE_REG_SCRATCH_VALUE_MASK 0xffffffffu

/* Frames */
#define KVNODE_REG_CAP_FRAMES_OFFSET 0x020u
#define KVNODE_REG_CAP_FRAMES_FRAMES_SHIFT 0
#define KVNODE_REG_CAP_FRAMES_FRAMES_MASK 0xffffffffu

/* Data path */
#define KVNODE_REG_CAP_MEMORY_OFFSET 0x024u
#define KVNODE_REG_CAP_MEMORY_SEGMENT_BYTES_SHIFT 0
#define KVNODE_REG_CAP_MEMORY_SEGMENT_BYTES_MASK 0x0000ffffu
#define KVNODE_REG_CAP_MEMORY_BEAT_BYTES_SHIFT 16
#define KVNODE_REG_CAP_MEMORY_BEAT_BYTES_MASK 0xffff0000u

/* Ports and rings */
#define KVNODE_REG_CAP_PORTS_OFFSET 0x028u
#define KVNODE_REG_CAP_PORTS_PORTS_SHIFT 0
#define KVNODE_REG_CAP_PORTS_PORTS_MASK 0x000000ffu
#define KVNODE_REG_CAP_PORTS_RINGS_PER_PORT_SHIFT 8
#define KVNODE_REG_CAP_PORTS_RINGS_PER_PORT_MASK 0x0000ff00u
#define KVNODE_REG_CAP_PORTS_LOOKUP_KEYS_SHIFT 16
#define KVNODE_REG_CAP_PORTS_LOOKUP_KEYS_MASK 0xffff0000u

/* Tables */
#define KVNODE_REG_CAP_TABLES_OFFSET 0x02cu
#define KVNODE_REG_CAP_TABLES_PARTITIONS_SHIFT 0
#define KVNODE_REG_CAP_TABLES_PARTITIONS_MASK 0x000000ffu
#define KVNODE_REG_CAP_TABLES_MODELS_SHIFT 16
#define KVNODE_REG_CAP_TABLES_MODELS_MASK 0xffff0000u

/* Sessions */
#define KVNODE_REG_CAP_SESSIONS_OFFSET 0x030u
#define KVNODE_REG_CAP_SESSIONS_SESSIONS_SHIFT 0
#define KVNODE_REG_CAP_SESSIONS_SESSIONS_MASK 0xffffffffu

/* Pins */
#define KVNODE_REG_CAP_PINS_OFFSET 0x034u
#define KVNODE_REG_CAP_PINS_PINS_PER_RING_SHIFT 0
#define KVNODE_REG_CAP_PINS_PINS_PER_RING_MASK 0xffffffffu

/* Parked reads */
#define KVNODE_REG_CAP_PARKED_OFFSET 0x038u
#define KVNODE_REG_CAP_PARKED_PARKED_READS_SHIFT 0
#define KVNODE_REG_CAP_PARKED_PARKED_READS_MASK 0xffffffffu

/* Block CAM */
#define KVNODE_REG_CAP_CAM_OFFSET 0x03cu
#define KVNODE_REG_CAP_CAM_BANKS_SHIFT 0
#define KVNODE_REG_CAP_CAM_BANKS_MASK 0x000000ffu
#define KVNODE_REG_CAP_CAM_WAYS_SHIFT 16
#define KVNODE_REG_CAP_CAM_WAYS_MASK 0xffff0000u

/* Block CAM, sets */
#define KVNODE_REG_CAP_CAM_SETS_OFFSET 0x040u
#define KVNODE_REG_CAP_CAM_SETS_SETS_SHIFT 0
#define KVNODE_REG_CAP_CAM_SETS_SETS_MASK 0xffffffffu

/* Hash matrix, which word */
#define KVNODE_REG_CAM_HASH_SELECT_OFFSET 0x048u
#define KVNODE_REG_CAM_HASH_SELECT_BANK_SHIFT 0
#define KVNODE_REG_CAM_HASH_SELECT_BANK_MASK 0x000000ffu
#define KVNODE_REG_CAM_HASH_SELECT_WORD_SHIFT 8
#define KVNODE_REG_CAM_HASH_SELECT_WORD_MASK 0x0000ff00u

/* Hash matrix, data */
#define KVNODE_REG_CAM_HASH_DATA_OFFSET 0x04cu
#define KVNODE_REG_CAM_HASH_DATA_VALUE_SHIFT 0
#define KVNODE_REG_CAM_HASH_DATA_VALUE_MASK 0xffffffffu

/* Administrative command */
#define KVNODE_REG_ADMIN_COMMAND_OFFSET 0x050u
#define KVNODE_REG_ADMIN_COMMAND_OPCODE_SHIFT 0
#define KVNODE_REG_ADMIN_COMMAND_OPCODE_MASK 0x0000001fu
#define KVNODE_REG_ADMIN_COMMAND_GO_SHIFT 31
#define KVNODE_REG_ADMIN_COMMAND_GO_MASK 0x80000000u

/* Administrative command, outcome */
#define KVNODE_REG_ADMIN_STATUS_OFFSET 0x054u
#define KVNODE_REG_ADMIN_STATUS_STATUS_SHIFT 0
#define KVNODE_REG_ADMIN_STATUS_STATUS_MASK 0x0000001fu
#define KVNODE_REG_ADMIN_STATUS_BUSY_SHIFT 31
#define KVNODE_REG_ADMIN_STATUS_BUSY_MASK 0x80000000u

/* Ring to bind */
#define KVNODE_REG_ADMIN_RING_OFFSET 0x058u
#define KVNODE_REG_ADMIN_RING_PORT_SHIFT 0
#define KVNODE_REG_ADMIN_RING_PORT_MASK 0x000000ffu
#define KVNODE_REG_ADMIN_RING_RING_SHIFT 8
#define KVNODE_REG_ADMIN_RING_RING_MASK 0x0000ff00u
#define KVNODE_REG_ADMIN_RING_BINDING_SHIFT 16
#define KVNODE_REG_ADMIN_RING_BINDING_MASK 0x00030000u

/* Partition */
#define KVNODE_REG_ADMIN_PARTITION_OFFSET 0x05cu
#define KVNODE_REG_ADMIN_PARTITION_PARTITION_SHIFT 0
#define KVNODE_REG_ADMIN_PARTITION_PARTITION_MASK 0x000000ffu
#define KVNODE_REG_ADMIN_PARTITION_POOL_SHIFT 8
#define KVNODE_REG_ADMIN_PARTITION_POOL_MASK 0x00000f00u
#define KVNODE_REG_ADMIN_PARTITION_PUBLIC_SHIFT 16
#define KVNODE_REG_ADMIN_PARTITION_PUBLIC_MASK 0x00010000u

/* Quota of the partition */
#define KVNODE_REG_ADMIN_QUOTA_OFFSET 0x060u
#define KVNODE_REG_ADMIN_QUOTA_QUOTA_SHIFT 0
#define KVNODE_REG_ADMIN_QUOTA_QUOTA_MASK 0xffffffffu

/* Guarantee of the partition */
#define KVNODE_REG_ADMIN_GUARANTEE_OFFSET 0x064u
#define KVNODE_REG_ADMIN_GUARANTEE_GUARANTEE_SHIFT 0
#define KVNODE_REG_ADMIN_GUARANTEE_GUARANTEE_MASK 0xffffffffu

/* Read mask of the partition, low half */
#define KVNODE_REG_ADMIN_READ_MASK_LOW_OFFSET 0x068u
#define KVNODE_REG_ADMIN_READ_MASK_LOW_LOW_SHIFT 0
#define KVNODE_REG_ADMIN_READ_MASK_LOW_LOW_MASK 0xffffffffu

/* Read mask of the partition, high half */
#define KVNODE_REG_ADMIN_READ_MASK_HIGH_OFFSET 0x06cu
#define KVNODE_REG_ADMIN_READ_MASK_HIGH_HIGH_SHIFT 0
#define KVNODE_REG_ADMIN_READ_MASK_HIGH_HIGH_MASK 0xffffffffu

/* Model */
#define KVNODE_REG_ADMIN_MODEL_OFFSET 0x070u
#define KVNODE_REG_ADMIN_MODEL_MODEL_SHIFT 0
#define KVNODE_REG_ADMIN_MODEL_MODEL_MASK 0x0000ffffu
#define KVNODE_REG_ADMIN_MODEL_STATE_SHIFT 16
#define KVNODE_REG_ADMIN_MODEL_STATE_MASK 0x00030000u

/* Error log, oldest entry */
#define KVNODE_REG_ERROR_ENTRY_OFFSET 0x080u
#define KVNODE_REG_ERROR_ENTRY_KIND_SHIFT 0
#define KVNODE_REG_ERROR_ENTRY_KIND_MASK 0x000000ffu
#define KVNODE_REG_ERROR_ENTRY_CODE_SHIFT 8
#define KVNODE_REG_ERROR_ENTRY_CODE_MASK 0x0000ff00u
#define KVNODE_REG_ERROR_ENTRY_PORT_SHIFT 16
#define KVNODE_REG_ERROR_ENTRY_PORT_MASK 0x000f0000u
#define KVNODE_REG_ERROR_ENTRY_RING_SHIFT 20
#define KVNODE_REG_ERROR_ENTRY_RING_MASK 0x00f00000u
#define KVNODE_REG_ERROR_ENTRY_VALID_SHIFT 31
#define KVNODE_REG_ERROR_ENTRY_VALID_MASK 0x80000000u

/* Error log, frame of the oldest entry */
#define KVNODE_REG_ERROR_FRAME_OFFSET 0x084u
#define KVNODE_REG_ERROR_FRAME_FRAME_SHIFT 0
#define KVNODE_REG_ERROR_FRAME_FRAME_MASK 0xffffffffu

/* Error log, removal */
#define KVNODE_REG_ERROR_POP_OFFSET 0x088u
#define KVNODE_REG_ERROR_POP_POP_SHIFT 0
#define KVNODE_REG_ERROR_POP_POP_MASK 0x00000001u

/* Interrupt status */
#define KVNODE_REG_INTERRUPT_STATUS_OFFSET 0x090u
#define KVNODE_REG_INTERRUPT_STATUS_ERROR_SHIFT 0
#define KVNODE_REG_INTERRUPT_STATUS_ERROR_MASK 0x00000001u
#define KVNODE_REG_INTERRUPT_STATUS_ERROR_LOST_SHIFT 1
#define KVNODE_REG_INTERRUPT_STATUS_ERROR_LOST_MASK 0x00000002u
#define KVNODE_REG_INTERRUPT_STATUS_ADMIN_SHIFT 2
#define KVNODE_REG_INTERRUPT_STATUS_ADMIN_MASK 0x00000004u
#define KVNODE_REG_INTERRUPT_STATUS_READY_SHIFT 3
#define KVNODE_REG_INTERRUPT_STATUS_READY_MASK 0x00000008u

/* Interrupt enable */
#define KVNODE_REG_INTERRUPT_ENABLE_OFFSET 0x094u
#define KVNODE_REG_INTERRUPT_ENABLE_ERROR_SHIFT 0
#define KVNODE_REG_INTERRUPT_ENABLE_ERROR_MASK 0x00000001u
#define KVNODE_REG_INTERRUPT_ENABLE_ERROR_LOST_SHIFT 1
#define KVNODE_REG_INTERRUPT_ENABLE_ERROR_LOST_MASK 0x00000002u
#define KVNODE_REG_INTERRUPT_ENABLE_ADMIN_SHIFT 2
#define KVNODE_REG_INTERRUPT_ENABLE_ADMIN_MASK 0x00000004u
#define KVNODE_REG_INTERRUPT_ENABLE_READY_SHIFT 3
#define KVNODE_REG_INTERRUPT_ENABLE_READY_MASK 0x00000008u

/* Completions OK */
#define KVNODE_REG_COUNT_STATUS_OK_OFFSET 0x100u
#define KVNODE_REG_COUNT_STATUS_OK_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_OK_COUNT_MASK 0xffffffffu

/* Completions HIT */
#define KVNODE_REG_COUNT_STATUS_HIT_OFFSET 0x104u
#define KVNODE_REG_COUNT_STATUS_HIT_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_HIT_COUNT_MASK 0xffffffffu

/* Completions MISS */
#define KVNODE_REG_COUNT_STATUS_MISS_OFFSET 0x108u
#define KVNODE_REG_COUNT_STATUS_MISS_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_MISS_COUNT_MASK 0xffffffffu

/* Completions PENDING */
#define KVNODE_REG_COUNT_STATUS_PENDING_OFFSET 0x10cu
#define KVNODE_REG_COUNT_STATUS_PENDING_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_PENDING_COUNT_MASK 0xffffffffu

/* Completions GRANTED */
#define KVNODE_REG_COUNT_STATUS_GRANTED_OFFSET 0x110u
#define KVNODE_REG_COUNT_STATUS_GRANTED_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_GRANTED_COUNT_MASK 0xffffffffu

/* Completions EXISTS */
#define KVNODE_REG_COUNT_STATUS_EXISTS_OFFSET 0x114u
#define KVNODE_REG_COUNT_STATUS_EXISTS_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_EXISTS_COUNT_MASK 0xffffffffu

/* Completions INVALID */
#define KVNODE_REG_COUNT_STATUS_INVALID_OFFSET 0x118u
#define KVNODE_REG_COUNT_STATUS_INVALID_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_INVALID_COUNT_MASK 0xffffffffu

/* Completions UNAVAILABLE */
#define KVNODE_REG_COUNT_STATUS_UNAVAILABLE_OFFSET 0x11cu
#define KVNODE_REG_COUNT_STATUS_UNAVAILABLE_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_UNAVAILABLE_COUNT_MASK 0xffffffffu

/* Completions DENIED */
#define KVNODE_REG_COUNT_STATUS_DENIED_OFFSET 0x120u
#define KVNODE_REG_COUNT_STATUS_DENIED_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_DENIED_COUNT_MASK 0xffffffffu

/* Completions STALE */
#define KVNODE_REG_COUNT_STATUS_STALE_OFFSET 0x124u
#define KVNODE_REG_COUNT_STATUS_STALE_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_STALE_COUNT_MASK 0xffffffffu

/* Completions RETIRED */
#define KVNODE_REG_COUNT_STATUS_RETIRED_OFFSET 0x128u
#define KVNODE_REG_COUNT_STATUS_RETIRED_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_RETIRED_COUNT_MASK 0xffffffffu

/* Completions RANGE */
#define KVNODE_REG_COUNT_STATUS_RANGE_OFFSET 0x12cu
#define KVNODE_REG_COUNT_STATUS_RANGE_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_RANGE_COUNT_MASK 0xffffffffu

/* Completions NO_SPACE */
#define KVNODE_REG_COUNT_STATUS_NO_SPACE_OFFSET 0x130u
#define KVNODE_REG_COUNT_STATUS_NO_SPACE_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_NO_SPACE_COUNT_MASK 0xffffffffu

/* Completions QUOTA */
#define KVNODE_REG_COUNT_STATUS_QUOTA_OFFSET 0x134u
#define KVNODE_REG_COUNT_STATUS_QUOTA_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_QUOTA_COUNT_MASK 0xffffffffu

/* Completions WRITE_ONCE */
#define KVNODE_REG_COUNT_STATUS_WRITE_ONCE_OFFSET 0x138u
#define KVNODE_REG_COUNT_STATUS_WRITE_ONCE_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_WRITE_ONCE_COUNT_MASK 0xffffffffu

/* Completions INCOMPLETE */
#define KVNODE_REG_COUNT_STATUS_INCOMPLETE_OFFSET 0x13cu
#define KVNODE_REG_COUNT_STATUS_INCOMPLETE_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_INCOMPLETE_COUNT_MASK 0xffffffffu

/* Completions CRC */
#define KVNODE_REG_COUNT_STATUS_CRC_OFFSET 0x140u
#define KVNODE_REG_COUNT_STATUS_CRC_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_CRC_COUNT_MASK 0xffffffffu

/* Completions MEM_ERROR */
#define KVNODE_REG_COUNT_STATUS_MEM_ERROR_OFFSET 0x144u
#define KVNODE_REG_COUNT_STATUS_MEM_ERROR_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_MEM_ERROR_COUNT_MASK 0xffffffffu

/* Completions POISON */
#define KVNODE_REG_COUNT_STATUS_POISON_OFFSET 0x148u
#define KVNODE_REG_COUNT_STATUS_POISON_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_STATUS_POISON_COUNT_MASK 0xffffffffu

/* Evictions */
#define KVNODE_REG_COUNT_EVICTIONS_OFFSET 0x180u
#define KVNODE_REG_COUNT_EVICTIONS_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_EVICTIONS_COUNT_MASK 0xffffffffu

/* Replacement stalls */
#define KVNODE_REG_COUNT_REPLACEMENT_STALL_STEPS_OFFSET 0x184u
#define KVNODE_REG_COUNT_REPLACEMENT_STALL_STEPS_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_REPLACEMENT_STALL_STEPS_COUNT_MASK 0xffffffffu

/* CAM refusals */
#define KVNODE_REG_COUNT_CAM_REFUSALS_OFFSET 0x188u
#define KVNODE_REG_COUNT_CAM_REFUSALS_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_CAM_REFUSALS_COUNT_MASK 0xffffffffu

/* ECC errors corrected */
#define KVNODE_REG_COUNT_ECC_CORRECTED_OFFSET 0x18cu
#define KVNODE_REG_COUNT_ECC_CORRECTED_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_ECC_CORRECTED_COUNT_MASK 0xffffffffu

/* ECC errors not corrected */
#define KVNODE_REG_COUNT_ECC_UNCORRECTED_OFFSET 0x190u
#define KVNODE_REG_COUNT_ECC_UNCORRECTED_COUNT_SHIFT 0
#define KVNODE_REG_COUNT_ECC_UNCORRECTED_COUNT_MASK 0xffffffffu

/* Frames FREE */
#define KVNODE_REG_FRAMES_FREE_OFFSET 0x1c0u
#define KVNODE_REG_FRAMES_FREE_FRAMES_SHIFT 0
#define KVNODE_REG_FRAMES_FREE_FRAMES_MASK 0xffffffffu

/* Frames WRITING */
#define KVNODE_REG_FRAMES_WRITING_OFFSET 0x1c4u
#define KVNODE_REG_FRAMES_WRITING_FRAMES_SHIFT 0
#define KVNODE_REG_FRAMES_WRITING_FRAMES_MASK 0xffffffffu

/* Frames SEALED */
#define KVNODE_REG_FRAMES_SEALED_OFFSET 0x1c8u
#define KVNODE_REG_FRAMES_SEALED_FRAMES_SHIFT 0
#define KVNODE_REG_FRAMES_SEALED_FRAMES_MASK 0xffffffffu

/* Frames DRAINING */
#define KVNODE_REG_FRAMES_DRAINING_OFFSET 0x1ccu
#define KVNODE_REG_FRAMES_DRAINING_FRAMES_SHIFT 0
#define KVNODE_REG_FRAMES_DRAINING_FRAMES_MASK 0xffffffffu

/* Frames QUARANTINED */
#define KVNODE_REG_FRAMES_QUARANTINED_OFFSET 0x1d0u
#define KVNODE_REG_FRAMES_QUARANTINED_FRAMES_SHIFT 0
#define KVNODE_REG_FRAMES_QUARANTINED_FRAMES_MASK 0xffffffffu

/* Pins in use */
#define KVNODE_REG_USED_PINS_OFFSET 0x1d4u
#define KVNODE_REG_USED_PINS_USED_SHIFT 0
#define KVNODE_REG_USED_PINS_USED_MASK 0xffffffffu

/* Sessions in use */
#define KVNODE_REG_USED_SESSIONS_OFFSET 0x1d8u
#define KVNODE_REG_USED_SESSIONS_USED_SHIFT 0
#define KVNODE_REG_USED_SESSIONS_USED_MASK 0xffffffffu

/* Parked in use */
#define KVNODE_REG_USED_PARKED_OFFSET 0x1dcu
#define KVNODE_REG_USED_PARKED_USED_SHIFT 0
#define KVNODE_REG_USED_PARKED_USED_MASK 0xffffffffu

/* Identity */
#define KVNODE_REQUESTER_REG_ID_OFFSET 0x000u
#define KVNODE_REQUESTER_REG_ID_MAGIC_SHIFT 0
#define KVNODE_REQUESTER_REG_ID_MAGIC_MASK 0xffffffffu
#define KVNODE_REQUESTER_REG_ID_MAGIC_VALUE 0x4b565251u

/* Interface version */
#define KVNODE_REQUESTER_REG_VERSION_OFFSET 0x004u
#define KVNODE_REQUESTER_REG_VERSION_MINOR_SHIFT 0
#define KVNODE_REQUESTER_REG_VERSION_MINOR_MASK 0x0000ffffu
#define KVNODE_REQUESTER_REG_VERSION_MINOR_VALUE 0x2u
#define KVNODE_REQUESTER_REG_VERSION_MAJOR_SHIFT 16
#define KVNODE_REQUESTER_REG_VERSION_MAJOR_MASK 0xffff0000u
#define KVNODE_REQUESTER_REG_VERSION_MAJOR_VALUE 0x0u

/* Rings and commands */
#define KVNODE_REQUESTER_REG_CAP_RINGS_OFFSET 0x008u
#define KVNODE_REQUESTER_REG_CAP_RINGS_RINGS_SHIFT 0
#define KVNODE_REQUESTER_REG_CAP_RINGS_RINGS_MASK 0x000000ffu
#define KVNODE_REQUESTER_REG_CAP_RINGS_LOOKUP_KEYS_SHIFT 16
#define KVNODE_REQUESTER_REG_CAP_RINGS_LOOKUP_KEYS_MASK 0xffff0000u

/* Data path */
#define KVNODE_REQUESTER_REG_CAP_MEMORY_OFFSET 0x00cu
#define KVNODE_REQUESTER_REG_CAP_MEMORY_SEGMENT_BYTES_SHIFT 0
#define KVNODE_REQUESTER_REG_CAP_MEMORY_SEGMENT_BYTES_MASK 0x0000ffffu
#define KVNODE_REQUESTER_REG_CAP_MEMORY_BEAT_BYTES_SHIFT 16
#define KVNODE_REQUESTER_REG_CAP_MEMORY_BEAT_BYTES_MASK 0xffff0000u

/* Commands in flight */
#define KVNODE_REQUESTER_REG_CAP_COMMANDS_OFFSET 0x010u
#define KVNODE_REQUESTER_REG_CAP_COMMANDS_COMMANDS_SHIFT 0
#define KVNODE_REQUESTER_REG_CAP_COMMANDS_COMMANDS_MASK 0x0000ffffu

/* Engines */
#define KVNODE_REQUESTER_REG_CAP_PREFETCH_OFFSET 0x014u
#define KVNODE_REQUESTER_REG_CAP_PREFETCH_PREFETCHES_SHIFT 0
#define KVNODE_REQUESTER_REG_CAP_PREFETCH_PREFETCHES_MASK 0x000000ffu
#define KVNODE_REQUESTER_REG_CAP_PREFETCH_FILL_SEGMENTS_SHIFT 8
#define KVNODE_REQUESTER_REG_CAP_PREFETCH_FILL_SEGMENTS_MASK 0x0000ff00u
#define KVNODE_REQUESTER_REG_CAP_PREFETCH_WINDOW_SEGMENTS_SHIFT 16
#define KVNODE_REQUESTER_REG_CAP_PREFETCH_WINDOW_SEGMENTS_MASK 0xffff0000u

/* Write-back buffer */
#define KVNODE_REQUESTER_REG_CAP_SLOTS_OFFSET 0x018u
#define KVNODE_REQUESTER_REG_CAP_SLOTS_SLOTS_SHIFT 0
#define KVNODE_REQUESTER_REG_CAP_SLOTS_SLOTS_MASK 0x000000ffu

/* Manager of sessions */
#define KVNODE_REQUESTER_REG_CAP_SESSIONS_OFFSET 0x01cu
#define KVNODE_REQUESTER_REG_CAP_SESSIONS_SESSIONS_SHIFT 0
#define KVNODE_REQUESTER_REG_CAP_SESSIONS_SESSIONS_MASK 0x0000ffffu

/* Event ring, service */
#define KVNODE_REQUESTER_REG_EVENT_CONTROL_OFFSET 0x020u
#define KVNODE_REQUESTER_REG_EVENT_CONTROL_ENABLE_SHIFT 0
#define KVNODE_REQUESTER_REG_EVENT_CONTROL_ENABLE_MASK 0x00000001u

/* Event ring, state */
#define KVNODE_REQUESTER_REG_EVENT_STATUS_OFFSET 0x024u
#define KVNODE_REQUESTER_REG_EVENT_STATUS_ACTIVE_SHIFT 0
#define KVNODE_REQUESTER_REG_EVENT_STATUS_ACTIVE_MASK 0x00000001u
#define KVNODE_REQUESTER_REG_EVENT_STATUS_FAILED_SHIFT 1
#define KVNODE_REQUESTER_REG_EVENT_STATUS_FAILED_MASK 0x00000002u

/* Event ring, address, low half */
#define KVNODE_REQUESTER_REG_EVENT_BASE_LOW_OFFSET 0x028u
#define KVNODE_REQUESTER_REG_EVENT_BASE_LOW_LOW_SHIFT 7
#define KVNODE_REQUESTER_REG_EVENT_BASE_LOW_LOW_MASK 0xffffff80u

/* Event ring, address, high half */
#define KVNODE_REQUESTER_REG_EVENT_BASE_HIGH_OFFSET 0x02cu
#define KVNODE_REQUESTER_REG_EVENT_BASE_HIGH_HIGH_SHIFT 0
#define KVNODE_REQUESTER_REG_EVENT_BASE_HIGH_HIGH_MASK 0xffffffffu

/* Event ring, size */
#define KVNODE_REQUESTER_REG_EVENT_SIZE_OFFSET 0x030u
#define KVNODE_REQUESTER_REG_EVENT_SIZE_LOG2_ENTRIES_SHIFT 0
#define KVNODE_REQUESTER_REG_EVENT_SIZE_LOG2_ENTRIES_MASK 0x0000000fu

/* Event ring, doorbell */
#define KVNODE_REQUESTER_REG_EVENT_HEAD_OFFSET 0x034u
#define KVNODE_REQUESTER_REG_EVENT_HEAD_HEAD_SHIFT 0
#define KVNODE_REQUESTER_REG_EVENT_HEAD_HEAD_MASK 0x0000ffffu

/* Interrupt status */
#define KVNODE_REQUESTER_REG_INTERRUPT_STATUS_OFFSET 0x040u
#define KVNODE_REQUESTER_REG_INTERRUPT_STATUS_COMPLETION_SHIFT 0
#define KVNODE_REQUESTER_REG_INTERRUPT_STATUS_COMPLETION_MASK 0x00000001u
#define KVNODE_REQUESTER_REG_INTERRUPT_STATUS_EVENT_SHIFT 1
#define KVNODE_REQUESTER_REG_INTERRUPT_STATUS_EVENT_MASK 0x00000002u
#define KVNODE_REQUESTER_REG_INTERRUPT_STATUS_FAILED_SHIFT 2
#define KVNODE_REQUESTER_REG_INTERRUPT_STATUS_FAILED_MASK 0x00000004u
#define KVNODE_REQUESTER_REG_INTERRUPT_STATUS_INACTIVE_SHIFT 3
#define KVNODE_REQUESTER_REG_INTERRUPT_STATUS_INACTIVE_MASK 0x00000008u

/* Interrupt enable */
#define KVNODE_REQUESTER_REG_INTERRUPT_ENABLE_OFFSET 0x044u
#define KVNODE_REQUESTER_REG_INTERRUPT_ENABLE_COMPLETION_SHIFT 0
#define KVNODE_REQUESTER_REG_INTERRUPT_ENABLE_COMPLETION_MASK 0x00000001u
#define KVNODE_REQUESTER_REG_INTERRUPT_ENABLE_EVENT_SHIFT 1
#define KVNODE_REQUESTER_REG_INTERRUPT_ENABLE_EVENT_MASK 0x00000002u
#define KVNODE_REQUESTER_REG_INTERRUPT_ENABLE_FAILED_SHIFT 2
#define KVNODE_REQUESTER_REG_INTERRUPT_ENABLE_FAILED_MASK 0x00000004u
#define KVNODE_REQUESTER_REG_INTERRUPT_ENABLE_INACTIVE_SHIFT 3
#define KVNODE_REQUESTER_REG_INTERRUPT_ENABLE_INACTIVE_MASK 0x00000008u

/* Link, state */
#define KVNODE_REQUESTER_REG_LINK_STATUS_OFFSET 0x048u
#define KVNODE_REQUESTER_REG_LINK_STATUS_AWAY_SHIFT 0
#define KVNODE_REQUESTER_REG_LINK_STATUS_AWAY_MASK 0x00000001u

/* Descriptors fetched */
#define KVNODE_REQUESTER_REG_COUNT_FETCHED_OFFSET 0x050u
#define KVNODE_REQUESTER_REG_COUNT_FETCHED_COUNT_SHIFT 0
#define KVNODE_REQUESTER_REG_COUNT_FETCHED_COUNT_MASK 0xffffffffu

/* Descriptors refused */
#define KVNODE_REQUESTER_REG_COUNT_REFUSED_OFFSET 0x054u
#define KVNODE_REQUESTER_REG_COUNT_REFUSED_COUNT_SHIFT 0
#define KVNODE_REQUESTER_REG_COUNT_REFUSED_COUNT_MASK 0xffffffffu

/* Messages dropped */
#define KVNODE_REQUESTER_REG_COUNT_DROPPED_OFFSET 0x058u
#define KVNODE_REQUESTER_REG_COUNT_DROPPED_COUNT_SHIFT 0
#define KVNODE_REQUESTER_REG_COUNT_DROPPED_COUNT_MASK 0xffffffffu

/* PUTs taken */
#define KVNODE_REQUESTER_REG_COUNT_PUTS_TAKEN_OFFSET 0x080u
#define KVNODE_REQUESTER_REG_COUNT_PUTS_TAKEN_COUNT_SHIFT 0
#define KVNODE_REQUESTER_REG_COUNT_PUTS_TAKEN_COUNT_MASK 0xffffffffu

/* PUTs of blocks that exist */
#define KVNODE_REQUESTER_REG_COUNT_PUTS_EXISTED_OFFSET 0x084u
#define KVNODE_REQUESTER_REG_COUNT_PUTS_EXISTED_COUNT_SHIFT 0
#define KVNODE_REQUESTER_REG_COUNT_PUTS_EXISTED_COUNT_MASK 0xffffffffu

/* PUTs sealed */
#define KVNODE_REQUESTER_REG_COUNT_PUTS_SEALED_OFFSET 0x088u
#define KVNODE_REQUESTER_REG_COUNT_PUTS_SEALED_COUNT_SHIFT 0
#define KVNODE_REQUESTER_REG_COUNT_PUTS_SEALED_COUNT_MASK 0xffffffffu

/* PUTs failed */
#define KVNODE_REQUESTER_REG_COUNT_PUTS_FAILED_OFFSET 0x08cu
#define KVNODE_REQUESTER_REG_COUNT_PUTS_FAILED_COUNT_SHIFT 0
#define KVNODE_REQUESTER_REG_COUNT_PUTS_FAILED_COUNT_MASK 0xffffffffu

/* Write-back buffer, full */
#define KVNODE_REQUESTER_REG_COUNT_PUTS_FULL_OFFSET 0x090u
#define KVNODE_REQUESTER_REG_COUNT_PUTS_FULL_COUNT_SHIFT 0
#define KVNODE_REQUESTER_REG_COUNT_PUTS_FULL_COUNT_MASK 0xffffffffu

/* Sessions managed */
#define KVNODE_REQUESTER_REG_SESSIONS_OFFSET 0x0a0u
#define KVNODE_REQUESTER_REG_SESSIONS_MANAGED_SHIFT 0
#define KVNODE_REQUESTER_REG_SESSIONS_MANAGED_MASK 0x0000ffffu

/* Fences answered */
#define KVNODE_REQUESTER_REG_COUNT_SESSIONS_ANSWERED_OFFSET 0x0a4u
#define KVNODE_REQUESTER_REG_COUNT_SESSIONS_ANSWERED_COUNT_SHIFT 0
#define KVNODE_REQUESTER_REG_COUNT_SESSIONS_ANSWERED_COUNT_MASK 0xffffffffu

/* Fences failed */
#define KVNODE_REQUESTER_REG_COUNT_SESSIONS_FAILED_OFFSET 0x0a8u
#define KVNODE_REQUESTER_REG_COUNT_SESSIONS_FAILED_COUNT_SHIFT 0
#define KVNODE_REQUESTER_REG_COUNT_SESSIONS_FAILED_COUNT_MASK 0xffffffffu

/* Sessions without a place */
#define KVNODE_REQUESTER_REG_COUNT_SESSIONS_UNMANAGED_OFFSET 0x0acu
#define KVNODE_REQUESTER_REG_COUNT_SESSIONS_UNMANAGED_COUNT_SHIFT 0
#define KVNODE_REQUESTER_REG_COUNT_SESSIONS_UNMANAGED_COUNT_MASK 0xffffffffu

#define KVNODE_RING_OFFSET(ring) (0x400u + 0x40u * (ring))
/* Ring, service */
#define KVNODE_RING_REG_CONTROL_OFFSET 0x000u
#define KVNODE_RING_REG_CONTROL_ENABLE_SHIFT 0
#define KVNODE_RING_REG_CONTROL_ENABLE_MASK 0x00000001u
#define KVNODE_RING_REG_CONTROL_LOSE_SHIFT 1
#define KVNODE_RING_REG_CONTROL_LOSE_MASK 0x00000002u

/* Ring, state */
#define KVNODE_RING_REG_STATUS_OFFSET 0x004u
#define KVNODE_RING_REG_STATUS_ACTIVE_SHIFT 0
#define KVNODE_RING_REG_STATUS_ACTIVE_MASK 0x00000001u
#define KVNODE_RING_REG_STATUS_FAILED_SHIFT 1
#define KVNODE_RING_REG_STATUS_FAILED_MASK 0x00000002u
#define KVNODE_RING_REG_STATUS_LOSING_SHIFT 2
#define KVNODE_RING_REG_STATUS_LOSING_MASK 0x00000004u
#define KVNODE_RING_REG_STATUS_OUTSTANDING_SHIFT 16
#define KVNODE_RING_REG_STATUS_OUTSTANDING_MASK 0xffff0000u

/* Submission ring, address, low half */
#define KVNODE_RING_REG_SUBMISSION_LOW_OFFSET 0x008u
#define KVNODE_RING_REG_SUBMISSION_LOW_LOW_SHIFT 7
#define KVNODE_RING_REG_SUBMISSION_LOW_LOW_MASK 0xffffff80u

/* Submission ring, address, high half */
#define KVNODE_RING_REG_SUBMISSION_HIGH_OFFSET 0x00cu
#define KVNODE_RING_REG_SUBMISSION_HIGH_HIGH_SHIFT 0
#define KVNODE_RING_REG_SUBMISSION_HIGH_HIGH_MASK 0xffffffffu

/* Completion ring, address, low half */
#define KVNODE_RING_REG_COMPLETION_LOW_OFFSET 0x010u
#define KVNODE_RING_REG_COMPLETION_LOW_LOW_SHIFT 7
#define KVNODE_RING_REG_COMPLETION_LOW_LOW_MASK 0xffffff80u

/* Completion ring, address, high half */
#define KVNODE_RING_REG_COMPLETION_HIGH_OFFSET 0x014u
#define KVNODE_RING_REG_COMPLETION_HIGH_HIGH_SHIFT 0
#define KVNODE_RING_REG_COMPLETION_HIGH_HIGH_MASK 0xffffffffu

/* Ring, size */
#define KVNODE_RING_REG_SIZE_OFFSET 0x018u
#define KVNODE_RING_REG_SIZE_LOG2_ENTRIES_SHIFT 0
#define KVNODE_RING_REG_SIZE_LOG2_ENTRIES_MASK 0x0000000fu

/* Submission ring, doorbell */
#define KVNODE_RING_REG_TAIL_OFFSET 0x01cu
#define KVNODE_RING_REG_TAIL_TAIL_SHIFT 0
#define KVNODE_RING_REG_TAIL_TAIL_MASK 0x0000ffffu

/* Completion ring, doorbell */
#define KVNODE_RING_REG_HEAD_OFFSET 0x020u
#define KVNODE_RING_REG_HEAD_HEAD_SHIFT 0
#define KVNODE_RING_REG_HEAD_HEAD_MASK 0x0000ffffu

/* Staging ring, doorbell */
#define KVNODE_RING_REG_CONSUMED_OFFSET 0x024u
#define KVNODE_RING_REG_CONSUMED_SEGMENTS_SHIFT 0
#define KVNODE_RING_REG_CONSUMED_SEGMENTS_MASK 0x0000ffffu

/* Fence of the producer */
#define KVNODE_RING_REG_FENCE_OFFSET 0x028u
#define KVNODE_RING_REG_FENCE_COUNT_SHIFT 0
#define KVNODE_RING_REG_FENCE_COUNT_MASK 0xffffffffu

/* Pins of the ring */
#define KVNODE_RING_REG_PINS_OFFSET 0x02cu
#define KVNODE_RING_REG_PINS_PINS_SHIFT 0
#define KVNODE_RING_REG_PINS_PINS_MASK 0x0000ffffu

/* The subject of BIND, SET_PARTITION and DROP_PARTITION. */
struct kvnode_settings {
    uint8_t partition;
    uint8_t pool;
    uint8_t public;
    uint8_t binding;
    uint8_t port;
    uint8_t ring;
    uint32_t quota;
    uint32_t guarantee;
} __attribute__((packed));
_Static_assert(sizeof(struct kvnode_settings) == 14, "size of kvnode_settings");
_Static_assert(offsetof(struct kvnode_settings, partition) == 0, "partition of kvnode_settings");
_Static_assert(offsetof(struct kvnode_settings, pool) == 1, "pool of kvnode_settings");
_Static_assert(offsetof(struct kvnode_settings, public) == 2, "public of kvnode_settings");
_Static_assert(offsetof(struct kvnode_settings, binding) == 3, "binding of kvnode_settings");
_Static_assert(offsetof(struct kvnode_settings, port) == 4, "port of kvnode_settings");
_Static_assert(offsetof(struct kvnode_settings, ring) == 5, "ring of kvnode_settings");
_Static_assert(offsetof(struct kvnode_settings, quota) == 6, "quota of kvnode_settings");
_Static_assert(offsetof(struct kvnode_settings, guarantee) == 10, "guarantee of kvnode_settings");

/* The subject of a PREFETCH that is STAGED. */
struct kvnode_staging {
    uint64_t address;
    uint8_t log2_segments;
    uint8_t reserved[7];
};
_Static_assert(sizeof(struct kvnode_staging) == 16, "size of kvnode_staging");
_Static_assert(offsetof(struct kvnode_staging, address) == 0, "address of kvnode_staging");
_Static_assert(offsetof(struct kvnode_staging, log2_segments) == 8, "log2_segments of kvnode_staging");
_Static_assert(offsetof(struct kvnode_staging, reserved) == 9, "reserved of kvnode_staging");

/* An entry of a submission ring: a command as on a link, and where its data is. */
struct kvnode_descriptor {
    uint8_t opcode;
    uint8_t flags;
    uint16_t model;
    uint16_t segment;
    uint16_t count;
    uint32_t length;
    uint32_t crc;
    uint64_t subject[2];
    uint64_t slot;
    uint64_t data;
    uint64_t results;
    uint16_t tag;
    uint8_t page_shift;
    uint8_t slice;
    uint32_t reserved;
};
_Static_assert(sizeof(struct kvnode_descriptor) == 64, "size of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, opcode) == 0, "opcode of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, flags) == 1, "flags of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, model) == 2, "model of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, segment) == 4, "segment of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, count) == 6, "count of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, length) == 8, "length of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, crc) == 12, "crc of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, subject) == 16, "subject of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, slot) == 32, "slot of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, data) == 40, "data of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, results) == 48, "results of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, tag) == 56, "tag of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, page_shift) == 58, "page_shift of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, slice) == 59, "slice of kvnode_descriptor");
_Static_assert(offsetof(struct kvnode_descriptor, reserved) == 60, "reserved of kvnode_descriptor");
#define KVNODE_DESCRIPTOR_FLAG_PIN 0x1u
#define KVNODE_DESCRIPTOR_FLAG_RUN 0x2u
#define KVNODE_DESCRIPTOR_FLAG_PARK 0x4u
#define KVNODE_DESCRIPTOR_FLAG_LIVE 0x8u
#define KVNODE_DESCRIPTOR_FLAG_SCATTERED 0x10u
#define KVNODE_DESCRIPTOR_FLAG_STAGED 0x20u

/* An entry of a completion ring, and a result of one key of a LOOKUP. */
struct kvnode_completion {
    uint64_t handle[2];
    uint64_t slot;
    uint16_t tag;
    uint16_t count;
    uint16_t items;
    uint8_t status;
    uint8_t flags;
};
_Static_assert(sizeof(struct kvnode_completion) == 32, "size of kvnode_completion");
_Static_assert(offsetof(struct kvnode_completion, handle) == 0, "handle of kvnode_completion");
_Static_assert(offsetof(struct kvnode_completion, slot) == 16, "slot of kvnode_completion");
_Static_assert(offsetof(struct kvnode_completion, tag) == 24, "tag of kvnode_completion");
_Static_assert(offsetof(struct kvnode_completion, count) == 26, "count of kvnode_completion");
_Static_assert(offsetof(struct kvnode_completion, items) == 28, "items of kvnode_completion");
_Static_assert(offsetof(struct kvnode_completion, status) == 30, "status of kvnode_completion");
_Static_assert(offsetof(struct kvnode_completion, flags) == 31, "flags of kvnode_completion");
#define KVNODE_COMPLETION_FLAG_PHASE 0x1u
#define KVNODE_COMPLETION_FLAG_NAMED 0x2u
#define KVNODE_COMPLETION_FLAG_GIVEN 0x4u

/* An entry of an event ring: a message. */
struct kvnode_event {
    uint64_t handle[2];
    uint64_t key[2];
    uint64_t slot;
    uint16_t model;
    uint8_t partition;
    uint8_t ring;
    uint8_t kind;
    uint8_t fate;
    uint8_t flags;
    uint8_t slice;
    uint8_t padding[15];
    uint8_t phase;
};
_Static_assert(sizeof(struct kvnode_event) == 64, "size of kvnode_event");
_Static_assert(offsetof(struct kvnode_event, handle) == 0, "handle of kvnode_event");
_Static_assert(offsetof(struct kvnode_event, key) == 16, "key of kvnode_event");
_Static_assert(offsetof(struct kvnode_event, slot) == 32, "slot of kvnode_event");
_Static_assert(offsetof(struct kvnode_event, model) == 40, "model of kvnode_event");
_Static_assert(offsetof(struct kvnode_event, partition) == 42, "partition of kvnode_event");
_Static_assert(offsetof(struct kvnode_event, ring) == 43, "ring of kvnode_event");
_Static_assert(offsetof(struct kvnode_event, kind) == 44, "kind of kvnode_event");
_Static_assert(offsetof(struct kvnode_event, fate) == 45, "fate of kvnode_event");
_Static_assert(offsetof(struct kvnode_event, flags) == 46, "flags of kvnode_event");
_Static_assert(offsetof(struct kvnode_event, slice) == 47, "slice of kvnode_event");
_Static_assert(offsetof(struct kvnode_event, padding) == 48, "padding of kvnode_event");
_Static_assert(offsetof(struct kvnode_event, phase) == 63, "phase of kvnode_event");
#define KVNODE_EVENT_FLAG_OF_PARTITION 0x1u
#define KVNODE_EVENT_FLAG_OF_MODEL 0x2u
#define KVNODE_EVENT_FLAG_LOST 0x4u
#define KVNODE_EVENT_FLAG_MANAGED 0x8u

/* An entry of the list of blocks of a PREFETCH. */
struct kvnode_block {
    uint64_t handle[2];
    uint64_t data;
    uint32_t length;
    uint8_t page_shift;
    uint8_t flags;
    uint8_t reserved[34];
};
_Static_assert(sizeof(struct kvnode_block) == 64, "size of kvnode_block");
_Static_assert(offsetof(struct kvnode_block, handle) == 0, "handle of kvnode_block");
_Static_assert(offsetof(struct kvnode_block, data) == 16, "data of kvnode_block");
_Static_assert(offsetof(struct kvnode_block, length) == 24, "length of kvnode_block");
_Static_assert(offsetof(struct kvnode_block, page_shift) == 28, "page_shift of kvnode_block");
_Static_assert(offsetof(struct kvnode_block, flags) == 29, "flags of kvnode_block");
_Static_assert(offsetof(struct kvnode_block, reserved) == 30, "reserved of kvnode_block");
#define KVNODE_BLOCK_FLAG_SCATTERED 0x10u

/* An entry of the arrival table of a PREFETCH. */
struct kvnode_arrival {
    uint32_t length;
    uint16_t block;
    uint16_t segment;
    uint16_t count;
    uint16_t tag;
    uint8_t status;
    uint8_t flags;
    uint16_t reserved;
};
_Static_assert(sizeof(struct kvnode_arrival) == 16, "size of kvnode_arrival");
_Static_assert(offsetof(struct kvnode_arrival, length) == 0, "length of kvnode_arrival");
_Static_assert(offsetof(struct kvnode_arrival, block) == 4, "block of kvnode_arrival");
_Static_assert(offsetof(struct kvnode_arrival, segment) == 6, "segment of kvnode_arrival");
_Static_assert(offsetof(struct kvnode_arrival, count) == 8, "count of kvnode_arrival");
_Static_assert(offsetof(struct kvnode_arrival, tag) == 10, "tag of kvnode_arrival");
_Static_assert(offsetof(struct kvnode_arrival, status) == 12, "status of kvnode_arrival");
_Static_assert(offsetof(struct kvnode_arrival, flags) == 13, "flags of kvnode_arrival");
_Static_assert(offsetof(struct kvnode_arrival, reserved) == 14, "reserved of kvnode_arrival");
#define KVNODE_ARRIVAL_FLAG_ARRIVED 0x1u
#define KVNODE_ARRIVAL_FLAG_FAILED 0x2u

enum kvnode_status {
    KVNODE_STATUS_OK = 0, /* done */
    KVNODE_STATUS_HIT = 1, /* the block is sealed and may be read */
    KVNODE_STATUS_MISS = 2, /* no such block, or none that this ring may know of */
    KVNODE_STATUS_PENDING = 3, /* being written, bound or drained; ask again, or park on it */
    KVNODE_STATUS_GRANTED = 4, /* a frame was given; write, then seal */
    KVNODE_STATUS_EXISTS = 5, /* the block is sealed already, with the same content; counts as success */
    KVNODE_STATUS_INVALID = 6, /* malformed: a field outside its type, or a resource that does not exist */
    KVNODE_STATUS_UNAVAILABLE = 7, /* link, ring, node or scope is out of service, or no epoch is set */
    KVNODE_STATUS_DENIED = 8, /* the ring has no right to do this */
    KVNODE_STATUS_STALE = 9, /* a handle, pin or session of another generation, epoch or scope */
    KVNODE_STATUS_RETIRED = 10, /* the model takes no new blocks */
    KVNODE_STATUS_RANGE = 11, /* beyond a length, a quota or a capacity that was declared */
    KVNODE_STATUS_NO_SPACE = 12, /* no frame, index slot or table entry is free */
    KVNODE_STATUS_QUOTA = 13, /* the partition is at its quota and has nothing to evict */
    KVNODE_STATUS_WRITE_ONCE = 14, /* already written: a segment below accepted, or a block sealed or sealing */
    KVNODE_STATUS_INCOMPLETE = 15, /* the length to seal is not the length accepted */
    KVNODE_STATUS_CRC = 16, /* the CRC32C to seal does not match the bytes accepted; the block is gone */
    KVNODE_STATUS_MEM_ERROR = 17, /* memory failed to store a segment; the block is gone */
    KVNODE_STATUS_POISON = 18, /* memory returned bytes that fail their check; the block is gone */
};

enum kvnode_opcode {
    KVNODE_OPCODE_LOOKUP = 1,
    KVNODE_OPCODE_ALLOC = 2,
    KVNODE_OPCODE_WRITE = 3,
    KVNODE_OPCODE_SEAL = 4,
    KVNODE_OPCODE_ABORT = 5,
    KVNODE_OPCODE_READ = 6,
    KVNODE_OPCODE_UNPIN = 7,
    KVNODE_OPCODE_DROP = 8,
    KVNODE_OPCODE_OPEN_SESSION = 9,
    KVNODE_OPCODE_CLOSE_SESSION = 10,
    KVNODE_OPCODE_MIGRATE = 11,
    KVNODE_OPCODE_ANSWER_FENCE = 12,
    KVNODE_OPCODE_BIND = 16,
    KVNODE_OPCODE_SET_PARTITION = 17,
    KVNODE_OPCODE_DROP_PARTITION = 18,
    KVNODE_OPCODE_SET_MODEL = 19,
    KVNODE_OPCODE_RETIRE = 20,
    KVNODE_OPCODE_SET_EPOCH = 21,
};

enum kvnode_engine_opcode {
    KVNODE_ENGINE_OPCODE_PREFETCH = 64,
    KVNODE_ENGINE_OPCODE_CANCEL = 65,
    KVNODE_ENGINE_OPCODE_PUT = 80,
    KVNODE_ENGINE_OPCODE_FLUSH = 81,
};

enum kvnode_lookup_mode {
    KVNODE_LOOKUP_MODE_RUN = 0,
    KVNODE_LOOKUP_MODE_BITMAP = 1,
};

enum kvnode_frame_state {
    KVNODE_FRAME_STATE_FREE = 0,
    KVNODE_FRAME_STATE_WRITING = 1,
    KVNODE_FRAME_STATE_SEALED = 2,
    KVNODE_FRAME_STATE_DRAINING = 3,
    KVNODE_FRAME_STATE_QUARANTINED = 4,
};

enum kvnode_model_state {
    KVNODE_MODEL_STATE_RETIRED = 0,
    KVNODE_MODEL_STATE_READ_ONLY = 1,
    KVNODE_MODEL_STATE_LIVE = 2,
};

enum kvnode_error_kind {
    KVNODE_ERROR_KIND_CAM_ECC = 1, /* a word of the block CAM had more than one bit wrong; code: its bank */
    KVNODE_ERROR_KIND_FRAME_ECC = 2, /* a word of a frame's state had more than one bit wrong; the frame is quarantined */
    KVNODE_ERROR_KIND_MEM_ERROR = 3, /* memory failed to store a segment */
    KVNODE_ERROR_KIND_POISON = 4, /* memory returned bytes that fail their check */
    KVNODE_ERROR_KIND_CRC = 5, /* the CRC32C to seal did not match the bytes accepted */
    KVNODE_ERROR_KIND_LOST = 6, /* a ring was lost */
    KVNODE_ERROR_KIND_TABLE_ECC = 7, /* a word of another table had more than one bit wrong; no command is taken until a restart */
    KVNODE_ERROR_KIND_LINK = 8, /* a port was lost: nothing came over its link for too long, or its other end was reset */
};

enum kvnode_bound {
    KVNODE_BOUND_NONE = 0,
    KVNODE_BOUND_PARTITION = 1,
    KVNODE_BOUND_ADMINISTRATIVE = 2,
};

enum kvnode_message_kind {
    KVNODE_MESSAGE_KIND_FENCE = 1,
    KVNODE_MESSAGE_KIND_INVALIDATE = 2,
    KVNODE_MESSAGE_KIND_EVENT = 3,
};

enum kvnode_fate {
    KVNODE_FATE_STORED = 0, /* sealed: it can be read */
    KVNODE_FATE_EVICTED = 1, /* its frame has gone to another block */
    KVNODE_FATE_DROPPED = 2, /* given up by DROP */
    KVNODE_FATE_DAMAGED = 3, /* memory returned bytes that fail their check */
};

#define KVNODE_HANDLE_WORDS 2
#define KVNODE_HANDLE_NODE_WORD 1
#define KVNODE_HANDLE_NODE_SHIFT 58
#define KVNODE_HANDLE_NODE_MASK UINT64_C(0xfc00000000000000)
#define KVNODE_HANDLE_SLICE_WORD 1
#define KVNODE_HANDLE_SLICE_SHIFT 52
#define KVNODE_HANDLE_SLICE_MASK UINT64_C(0x03f0000000000000)
#define KVNODE_HANDLE_FRAME_WORD 1
#define KVNODE_HANDLE_FRAME_SHIFT 32
#define KVNODE_HANDLE_FRAME_MASK UINT64_C(0x000fffff00000000)
#define KVNODE_HANDLE_GENERATION_WORD 1
#define KVNODE_HANDLE_GENERATION_SHIFT 0
#define KVNODE_HANDLE_GENERATION_MASK UINT64_C(0x00000000ffffffff)
#define KVNODE_HANDLE_EPOCH_WORD 0
#define KVNODE_HANDLE_EPOCH_SHIFT 0
#define KVNODE_HANDLE_EPOCH_MASK UINT64_C(0xffffffffffffffff)

#define KVNODE_SLOT_ID_WORDS 1
#define KVNODE_SLOT_ID_SLOT_WORD 0
#define KVNODE_SLOT_ID_SLOT_SHIFT 48
#define KVNODE_SLOT_ID_SLOT_MASK UINT64_C(0xffff000000000000)
#define KVNODE_SLOT_ID_GENERATION_WORD 0
#define KVNODE_SLOT_ID_GENERATION_SHIFT 0
#define KVNODE_SLOT_ID_GENERATION_MASK UINT64_C(0x0000ffffffffffff)

#define KVNODE_KEY_BITS 128
#define KVNODE_EPOCH_BITS 64
#define KVNODE_TAG_BITS 16
#define KVNODE_ALIGNMENT 128 /* of rings, keys, results and lists of pages, in bytes */
#define KVNODE_PAGE_SHIFT_LEAST 9
#define KVNODE_PAGE_SHIFT_MOST 31

#endif
