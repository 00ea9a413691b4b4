"""What a way of the block CAM holds, and how it is told from what it should hold."""

from amaranth import Cat, Const, Module, Value
from amaranth.lib import data

from hw.params import Params
from hw.params.secded import Code, secded, uncoded
from hw.params.toeplitz import tag_bits
from hw.rtl.layouts import frame_bits
from hw.rtl.secded import encode, lost, near


class EntryFormat:
    """Valid bit, tag and frame, each a codeword of its own, so that each is judged without the others.

    With ECC a flipped bit needs no correction before a comparison: a stored tag that differs from the codeword sought
    in one bit is the tag, since other tags differ in three or more, and one that has lost two bits is no tag at all.
    The valid bit is four copies: three make a way taken, one leaves it free, two make it neither.
    """

    def __init__(self, params: Params):
        code = secded if params.tables.ecc else uncoded
        self.valid = code(1)
        self.tag = code(tag_bits(params))
        self.frame = code(frame_bits(params))
        self.layout = data.StructLayout(
            {"valid": self.valid.bits, "tag": self.tag.bits, "frame": self.frame.bits},
        )

    @property
    def codes(self) -> dict[str, Code]:
        """The code of each field."""
        return {"valid": self.valid, "tag": self.tag, "frame": self.frame}

    def pack(self, *, valid: int, tag: int, frame: int) -> int:
        """Return an entry as one integer."""
        return self.layout.const(
            {"valid": self.valid.encode(valid), "tag": self.tag.encode(tag), "frame": self.frame.encode(frame)}
        ).as_bits()

    def encode(self, *, valid: Value, tag: Value, frame: Value) -> Value:
        """Return an entry."""
        return Cat(encode(self.valid, valid), encode(self.tag, tag), encode(self.frame, frame))

    def is_free(self, m: Module, entry: data.View) -> Value:
        """Return whether nothing is stored; an entry with a lost valid bit is neither free nor a hit."""
        return near(m, self.valid, entry.valid, Const(self.valid.encode(0), self.valid.bits))

    def is_hit(self, m: Module, entry: data.View, tag: Value) -> Value:
        """Return whether an entry is stored under the codeword `tag`, and its frame can be told."""
        taken = near(m, self.valid, entry.valid, Const(self.valid.encode(1), self.valid.bits))
        return taken & near(m, self.tag, entry.tag, tag) & ~lost(m, self.frame, entry.frame)
