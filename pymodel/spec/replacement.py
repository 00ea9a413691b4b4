"""Which frame an ALLOC gets: quotas, guarantees, and CLOCK with a queue of victims."""

from hw.params.params import Params
from hw.params.protocol import FrameState
from pymodel.spec.state import Frame, Partition, Pool


class Replacement:
    """Chooses frames; changes nothing but hands, queues and reference bits.

    Below its quota a partition takes the oldest FREE frame, else a victim of the partition that is furthest above its
    guarantee (ties: lowest id), and one of its own if that has none: nobody can hold up another by holding all that is
    his. At its quota it takes a victim of its own. Frames that others are guaranteed are not borrowed.
    A public partition that is isolated takes no victim: its readers hold blocks, and it is not to learn which.
    Dead blocks have no rule of their own: until the sweep has made their frames FREE they are as any others.
    """

    def __init__(
        self,
        params: Params,
        partitions: list[Partition],
        counters: dict[str, int],
    ) -> None:
        self._tables = params.tables
        self._strict = params.strict
        self._partitions = partitions
        self._counters = counters

    def choose(self, partition: Partition) -> Frame | None:
        """A FREE frame or a victim for ``partition``, or None."""
        pool = partition.pool
        full = partition.used >= partition.quota
        if (
            not full
            and pool.free
            and (partition.used < partition.guarantee or self.borrowed(pool) < self.lendable(pool))
        ):
            return pool.free[0]
        if self._strict and partition.public:
            return None
        if full:
            return self._victim(partition)
        donor = self._donor(partition)
        victim = self._victim(donor)
        return self._victim(partition) if victim is None and donor is not partition else victim

    def borrowed(self, pool: Pool) -> int:
        """Frames of ``pool`` that partitions hold above their guarantees."""
        return sum(max(0, p.used - p.guarantee) for p in self._sharers(pool))

    def lendable(self, pool: Pool) -> int:
        """Frames of ``pool`` in service that no partition is guaranteed."""
        return len(pool.frames) - pool.quarantined - sum(p.guarantee for p in self._sharers(pool))

    def _sharers(self, pool: Pool) -> list[Partition]:
        return [p for p in self._partitions if p.pool is pool]

    def _donor(self, partition: Partition) -> Partition:
        """The partition furthest above its guarantee, or else the one that asks."""
        above = [p for p in self._sharers(partition.pool) if p.used > p.guarantee]
        return max(above, key=lambda p: (p.used - p.guarantee, -p.id), default=partition)

    def _victim(self, partition: Partition) -> Frame | None:
        """The first queued frame that may still be evicted; the hand keeps the queue filled.

        Each ALLOC that evicts moves the hand a few steps. Only when the queue has no victim does it stall for more,
        until every frame has been passed twice (once to lose its reference, once to be taken): None means that the
        partition has nothing to evict.
        """
        for _ in range(self._tables.scan_steps):
            self._advance(partition)
        victim = self._queued(partition)
        steps_around = -(-len(partition.pool.frames) // self._tables.scan_frames)
        for _ in range(2 * steps_around + 1):
            if victim is not None:
                break
            self._counters["replacement_stall_steps"] += 1
            self._advance(partition)
            victim = self._queued(partition)
        return victim

    def _queued(self, partition: Partition) -> Frame | None:
        """The oldest entry of the queue that is still a victim; those before it leave the queue.

        An entry whose frame is not queued any more, or not the partition's, counts for nothing.
        """
        while partition.victims:
            frame = partition.victims.popleft()
            if frame.partition is partition and frame.queued:
                frame.queued = False
                if self._candidate(frame, partition) and not frame.referenced:
                    return frame
        return None

    def _candidate(self, frame: Frame, partition: Partition) -> bool:
        """Whether the block may go, and its frame be used once more."""
        return (
            frame.state is FrameState.SEALED
            and frame.partition is partition
            and not frame.held
            and frame.generation < (1 << self._tables.generation_bits) - 1
        )

    def _advance(self, partition: Partition) -> None:
        """Move the hand to the next boundary of ``scan_frames``, or to where the queue is full.

        Of the partition's own SEALED frames that nothing holds and that are not queued yet, a referenced one loses
        its reference, another is queued.
        """
        frames = partition.pool.frames
        step = self._tables.scan_frames
        end = min(len(frames), (partition.hand // step + 1) * step)
        while partition.hand < end and len(partition.victims) < self._tables.victims:
            frame = frames[partition.hand]
            partition.hand += 1
            if self._candidate(frame, partition) and not frame.queued:
                if frame.referenced:
                    frame.referenced = False
                else:
                    frame.queued = True
                    partition.victims.append(frame)
        if partition.hand == len(frames):
            partition.hand = 0
