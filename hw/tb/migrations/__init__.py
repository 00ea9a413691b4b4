"""One session moves between two rings, again and again, in the middle of whatever they do; and a ledger of its own."""

from hw.tb.migrations.ledger import Block, Ledger
from hw.tb.migrations.traffic import Migrations

__all__ = ["Block", "Ledger", "Migrations"]
